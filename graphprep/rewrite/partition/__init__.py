"""``graphprep partition``: which partition each node belongs to, and the store in that partitioning.

In: a store. Out: a store, or files of assignments, and how good the partitioning is. Nothing here knows inputs or trainers.
"""
