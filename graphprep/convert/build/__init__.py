"""From buckets to the arrays of a store.

In: routes. Out: arrays in partitions, through a ``StoreWriter``. Nothing here knows inputs.
"""
