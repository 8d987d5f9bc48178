"""What flows between the layers: types only, nothing of graphprep is imported."""
