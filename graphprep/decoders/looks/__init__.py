"""What each format looks like: told by names and first bytes. Loads no decoder, no NumPy, no kernel.

In: the first bytes of a file, its name. Out: the name of the format, or why it cannot be told.
"""
