"""From URLs to decoded rows: find the decoder, plan spans, decode their blocks on threads, keep the rows in input order.

In: URLs, a decoder. Out: ``Decoded``. Nothing here knows typed IDs, partitions or stores.
"""
