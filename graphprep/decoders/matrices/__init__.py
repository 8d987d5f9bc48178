"""Matrices in text: Matrix Market and METIS."""
