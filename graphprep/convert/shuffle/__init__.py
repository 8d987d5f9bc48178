"""From input order to buckets: every node's columns and every edge to the bucket of the row that it becomes part of.

In: ``Decoded`` and ``NodeIndex``. Out: routes, with runs by bucket. Nothing here knows files of a store.
"""
