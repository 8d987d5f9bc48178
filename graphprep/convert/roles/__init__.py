"""Labels, splits, seeds and declared columns: settled once all rows are scattered, before they are written.

In: routes and flags. Out: routes of the columns that are stored in their place.
"""
