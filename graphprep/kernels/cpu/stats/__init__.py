"""Kernels of ``stats``: repeated and reciprocal edges, distinct values, triangles."""
