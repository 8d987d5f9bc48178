"""A store that is read: its paths, items and raw IDs, and what partition functions say.

In: a ``StoreReader``. Out: items in pieces that memory holds. Nothing here knows how stores are made, checked or exported.
"""
