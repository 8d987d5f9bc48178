"""PyTorch Geometric: one file of tensors, or partitions."""
