"""The edge engine's kernels on the CPU: see ``graphprep.kernels.edges``. The only ones that get CUDA twins."""
