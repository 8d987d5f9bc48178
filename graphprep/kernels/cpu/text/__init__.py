"""Text to numbers and columns, and back."""
