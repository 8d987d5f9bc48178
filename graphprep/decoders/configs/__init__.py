"""Formats whose config names the files: graph.yaml, GraphBolt, GraphStorm, Neo4j, OGB; and columns in files of their own."""
