"""Contract suites and strategies, for us and for plugins."""
