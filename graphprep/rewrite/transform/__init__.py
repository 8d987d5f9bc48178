"""``graphprep transform``: a store whose nodes and edges are those of another, chosen, added, turned or merged.

In: a store and operations, in order. Out: a store. An operation (``edge_ops``, ``node_ops``) makes a ``Recipe`` of a store:
which nodes stay and what the edges are; ``write`` makes the store of it, whatever the operation was.
"""
