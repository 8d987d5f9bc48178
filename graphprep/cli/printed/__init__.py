"""What commands print: numbers and tables in words, summaries, reports."""
