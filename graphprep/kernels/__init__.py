"""Compiled loops over arrays, and what compiles and keeps them.

In: arrays, numbers, None. Out: numbers; the caller's arrays are filled. A kernel never raises and knows no objects.
"""
