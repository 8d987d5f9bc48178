"""``graphprep convert``: raw inputs to a store. The rooms stand in the order in which an input goes through them.

In: URLs and ``ConvertOptions``. Out: a store at a URL, and a ``ConvertSummary``. ``pipeline`` calls the rooms one after
the other; a room does not know those after it, and nothing here knows a trainer.
"""
