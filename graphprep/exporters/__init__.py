"""One target a file. None yet: export comes with its own issue."""
