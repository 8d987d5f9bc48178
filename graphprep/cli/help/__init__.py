"""How the commands' help is put together: flags in groups, and pages of what most people need, all, and a format's own.

In: typer commands. Out: their help. Nothing here knows what a command does.
"""
