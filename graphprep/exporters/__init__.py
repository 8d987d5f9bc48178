"""Targets of ``export``: each a module, or a package where it needs more.

In: a ``StoredGraph`` (``view``). Out: files (``formats``). No exporter knows inputs, or opens a store itself.
"""
