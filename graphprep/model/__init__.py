"""The types that flow, errors, and the arithmetic of IDs. Knows nothing else of graphprep."""
