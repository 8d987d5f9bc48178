"""``graphprep info``: what is at a path, and which tables a folder of files makes.

In: a URL. Out: a description. Nothing here decodes more than the first rows.
"""
