"""An input in units that anybody decodes: the workers of a batch system or of dask; one process takes them together.

In: what ``read`` planned. Out: blocks of raw rows in input order, which ``read`` collects as if it had decoded them itself.
"""
