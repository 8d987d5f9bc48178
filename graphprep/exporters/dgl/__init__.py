"""DGL: chunked graphs, partitions for DistDGL, datasets for GraphBolt."""
