"""``graphprep ids``: IDs of a store from one space to another.

In: a store, IDs in batches. Out: IDs in the same order. In bounded memory.
"""
