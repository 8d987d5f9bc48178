"""Files that many programs read: text edge lists, Matrix Market, METIS, SciPy, NumPy, Parquet."""
