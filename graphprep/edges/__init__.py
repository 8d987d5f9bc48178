"""The edge engine: edges of one type from any order to rows of CSR or CSC, and rows to other rows.

In: ends as integers that were checked, in memory or in runs. Out: rows, in memory or piece by piece. Nothing here knows inputs,
commands or trainers. ``convert`` builds stores with it, ``rewrite`` moves them, and the library's functions over arrays are it.
"""
