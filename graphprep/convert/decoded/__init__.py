"""What was decoded, on its way: rows, their columns and texts, kept in runs that spill.

In: raw rows of one batch after another. Out: ``Decoded``. Nothing here knows where rows came from or what becomes of them.
"""
