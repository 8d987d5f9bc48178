"""Kernels that draw: random numbers by counter, and what is chosen by them."""
