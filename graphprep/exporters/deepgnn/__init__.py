"""The files of DeepGNN's engine, and its three text formats."""
