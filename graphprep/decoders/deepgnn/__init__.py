"""DeepGNN's EdgeList, JSON and TSV: a scanner of plain records, and a walker of all others."""
