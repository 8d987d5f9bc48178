"""Commands that make a store of a store: ``graphprep reorder``.

In: a store. Out: a store, array by array, in bounded memory. Nothing here knows inputs or trainers.
"""
