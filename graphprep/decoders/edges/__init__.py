"""Plain edge lists, text or Parquet, and triples."""
