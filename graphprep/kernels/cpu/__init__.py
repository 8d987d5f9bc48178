"""Kernels on the CPU, compiled by Numba."""
