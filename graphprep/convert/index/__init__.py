"""From raw IDs to typed IDs: which nodes exist, of which types, in which partitions.

In: ``Decoded``. Out: ``NodeIndex``, and resolvers of the ends of edges. Nothing here knows columns or layouts.
"""
