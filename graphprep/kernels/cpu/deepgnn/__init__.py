"""Records of DeepGNN's formats, plain and any."""
