"""Node and edge tables, of text, JSON lines, Arrow or arrays, to a heterogeneous graph."""
