"""``graphprep.load``: a store in Python, and questions about its nodes and edges.

In: the URL of a store. Out: ``Graph``, with arrays that are memory maps where files are local. Nothing here writes.
"""
