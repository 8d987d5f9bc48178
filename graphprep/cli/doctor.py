"""``graphprep doctor``: what graphprep finds on this machine."""

from __future__ import annotations

import typer

from graphprep.cli.options import AsJson


def doctor(*, as_json: AsJson = False) -> None:
    """Tell what graphprep finds here: versions, kernels, devices.

    Also extras, memory and where temporary files go. What is not as it should be stands there with what mends it.

    Example: graphprep doctor
    """
    import dataclasses

    from graphprep.info.doctor import examine
    from graphprep.model.shown.texts import json_text

    found = list(examine())
    if as_json:
        typer.echo(json_text([dataclasses.asdict(one) for one in found]))
        return
    width = max(len(one.topic) for one in found)
    for one in found:
        typer.echo(f"{one.topic:<{width}}  {one.text}")
        if one.fix:
            typer.echo(f"{'':<{width}}    fix: {one.fix}")
