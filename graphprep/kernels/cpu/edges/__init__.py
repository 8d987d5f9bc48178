"""The edge engine's kernels; the only ones that get CUDA twins."""
