"""The chunked graph format of DGL."""
