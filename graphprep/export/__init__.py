"""``graphprep export``: a store as a trainer's files.

In: a store, a target and ``ExportOptions``. Out: a folder, and an ``ExportSummary``. The targets are in ``exporters``.
"""
