"""A typer app of two commands that do nothing: what every command line written with typer costs."""

from __future__ import annotations

import typer

app = typer.Typer(add_completion=False, rich_markup_mode=None)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo("typer-app 1.0")
        raise typer.Exit


@app.callback()
def main(version: bool = typer.Option(False, "--version", callback=_print_version, is_eager=True)) -> None:
    """Do nothing."""


@app.command()
def one(path: str) -> None:
    """Do one thing."""


@app.command()
def two(path: str, number: int = 1) -> None:
    """Do another thing."""


if __name__ == "__main__":
    app()
