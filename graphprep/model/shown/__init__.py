"""How numbers, texts and results are shown."""
