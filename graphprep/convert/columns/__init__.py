"""What is known of columns on their way: their kinds and statistics, the roles that flags give them, where their cells go.

In: cells of some rows. Out: what the schema says of them, in runs by bucket. Nothing here knows how rows are read or built.
"""
