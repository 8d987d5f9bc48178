"""Columns of stores as cells, as arrays of Arrow, and as the tensors that trainers have of them.

In: stored arrays, or values that become them. Out: ``Cells``, arrays. Nothing here knows files of trainers.
"""
