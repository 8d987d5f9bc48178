"""Compiles kernels once, keeps their machine code, and calls it without Numba. Knows no kernel."""
