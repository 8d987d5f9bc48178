"""``graphprep clean``: what runs that failed or were killed left is removed.

In: places, local or remote. Out: a ``CleanReport``. It knows the names of what runs write while they run, and their claims; it
opens no store.
"""
