"""``graphprep doctor``: what graphprep finds on this machine."""

from __future__ import annotations

import re

import typer

from graphprep.cli.help.groups import with_groups
from graphprep.cli.options import AsJson

_COLUMNS = 80
_NUMBER = re.compile(r" (?=\d)")  # stays with what is before it, such as a name with its version


@with_groups(has_config=False)
def doctor(*, as_json: AsJson = False) -> None:
    """Tell what graphprep finds here: versions, kernels, devices.

    Also extras, memory and where temporary files go. What is not as it should be stands there with what mends it.

    Example: graphprep doctor
    """
    import dataclasses
    from textwrap import wrap

    from graphprep.info.doctor import examine
    from graphprep.model.shown.texts import json_text

    found = list(examine())
    if as_json:
        typer.echo(json_text([dataclasses.asdict(one) for one in found]))
        return
    width = max(len(one.topic) for one in found)
    for one in found:
        topic = one.topic
        for text, indent in ((one.text, 2), (one.fix and f"fix: {one.fix}", 4)):
            whole = _NUMBER.sub("\xa0", text)
            for line in wrap(whole, _COLUMNS - width - indent, break_long_words=False, break_on_hyphens=False):
                typer.echo(f"{topic:<{width + indent}}{line}".replace("\xa0", " "))
                topic = ""
