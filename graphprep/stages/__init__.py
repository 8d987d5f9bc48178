"""One step a file, in the order of the data."""
