"""Input formats: each a module, or a package where it needs more. What they share is in ``cells``.

In: blocks of text, or files that are read in batches. Out: ``RawRows``. No decoder knows typed IDs, partitions or stores.
"""
