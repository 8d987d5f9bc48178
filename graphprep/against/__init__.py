"""``graphprep validate --against``: whether a store holds what its input says, whatever the order of its rows.

In: a store, and a store that was made of the input. Out: faults, with places in both. Nothing here knows formats.
"""
