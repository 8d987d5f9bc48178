"""The partitions of GraphLearn-for-PyTorch."""
