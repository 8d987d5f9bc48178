"""Orders of nodes: what an order costs."""
