"""``graphprep stats``: what a graph is like, in numbers and pictures, in bounded memory.

In: a store. Out: a report of numbers, and pictures of it. Nothing here writes stores, or knows raw inputs and trainers.
"""
