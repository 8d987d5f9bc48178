"""One input format a file."""
