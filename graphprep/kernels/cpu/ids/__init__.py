"""IDs: hashes, groups, sets, ranks and lookups."""
