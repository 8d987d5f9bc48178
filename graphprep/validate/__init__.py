"""``graphprep validate``: whether a store is what docs/store.md says, all faults with their places, in bounded memory.

In: the URL of a store. Out: faults. Nothing else may import this to read a store; it trusts nothing that it reads.
"""
