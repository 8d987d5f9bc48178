"""A second, slow implementation of the store format: from decoded records to every byte, by plain loops.

It was written from the description of the format alone and imports nothing of graphprep: what both agree on is what
the description says.
"""
