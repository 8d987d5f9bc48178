"""graphprep prepares graph data for graph learning: raw dumps in, CSR/CSC partitions out."""

__version__ = "0.1.0"
