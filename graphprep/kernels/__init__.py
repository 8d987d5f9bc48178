"""Numbers only: arrays in, arrays out. Kernels never raise."""
