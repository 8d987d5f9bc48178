"""Graphs as NumPy's arrays: edges, and matrices in CSR and CSC."""
