"""Kernels for the CPU: compiled on first use, and kept."""
