"""Bytes at URLs: the only package that imports fsspec.

In: URLs. Out: bytes, with every failure in the user's words. Knows no graphs, but the files of a store.
"""
