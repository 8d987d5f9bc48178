"""A store: its paths; items and raw IDs of one that is read; the end of one that is written; partition functions.

In: a ``StoreReader``. Out: items in pieces that memory holds. Nothing here knows how arrays are made, checked or exported.
"""
