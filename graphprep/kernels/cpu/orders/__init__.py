"""Orders of nodes that follow from the graph: walks and communities, and what an order costs."""
