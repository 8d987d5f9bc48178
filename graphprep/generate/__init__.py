"""``graphprep generate``: test graphs from a seed, as files.

In: ``GenerateOptions``. Out: files of a format that ``convert`` reads. docs/generate.md defines every bit.
"""
