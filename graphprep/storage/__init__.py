"""Bytes at URLs: the only package that imports fsspec."""
