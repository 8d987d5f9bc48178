"""Commands over stores that are there: what they hold, and others made of them."""
