"""``graphprep kernels``: the machine code of kernels, which a first run would compile."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from graphprep.cli.help.groups import with_groups
from graphprep.cli.options import AsJson, ReportFlags
from graphprep.model.option import Option

if TYPE_CHECKING:
    from graphprep.model.protocols import Reporter

_of_kernels = partial(Option, "Kernels")


@with_groups(has_config=False)
def kernels(
    *,
    action: Annotated[
        Literal["list", "build", "clean"],
        typer.Argument(
            metavar="list|build|clean",
            help="Tell where each kernel's code is, compile what is missing, or remove what was kept.",
        ),
    ],
    report_flags: ReportFlags,
    jobs: Annotated[int, _of_kernels("Processes that compile at once; 0: one a core, as far as memory goes.", metavar="N")] = 0,
    cpu: Annotated[
        list[str] | None,
        _of_kernels(
            "Compile for all processors of a level, such as x86-64-v3, into the package: what a wheel brings.", metavar="LEVEL"
        ),
    ] = None,
    uses: Annotated[
        list[str] | None,
        _of_kernels(
            "Compile what most runs of this need: convert-json, export-pyg, reorder and so on, for each a --for.",
            flags="--for",
            metavar="USE",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List, compile or remove the machine code of kernels.

    A wheel of graphprep brings it. Else the first run of each kind compiles what it needs, in a second or two a kernel, and
    keeps it; build does that for all of them beforehand, for instance when an image is made.

    Example: graphprep kernels build --for convert-edges --for export-pyg
    """
    from graphprep.cli.progress import reporting
    from graphprep.model.errors import UsageError

    if action != "build" and (jobs or cpu or uses):
        raise UsageError(f"kernels {action} compiles nothing", fix="leave out --jobs, --cpu and --for")
    if jobs < 0:
        raise UsageError(f"--jobs {jobs}: there is no such number of processes", fix="give 0 for one a core, or more")
    if cpu and uses:
        raise UsageError("--for with --cpu: a wheel brings all kernels", fix="leave out one of them")
    with reporting(report_flags) as reporter:
        text = _list(as_json, every=report_flags.verbose > 0) if action == "list" else ""
        if action == "build":
            text = _build(jobs, cpu or [], uses or [], reporter, as_json=as_json)
        if action == "clean":
            text = _clean(as_json)
    if as_json or not report_flags.quiet:
        typer.echo(text)


def _list(as_json: bool, *, every: bool) -> str:
    import dataclasses
    from collections import Counter

    from graphprep.cli.printed.words import count
    from graphprep.kernels.compiler.manage import list_kernels
    from graphprep.model.shown.texts import json_text

    found = list(list_kernels())
    if as_json:
        return json_text([dataclasses.asdict(one) for one in found])
    lines = [f"{one.kernel}({one.types}): {one.place}" for one in found] if every else []
    lines += [f"{count(num, 'kernel')} {place}" for place, num in sorted(Counter(one.place for one in found).items())]
    return "\n".join(lines)


def _build(jobs: int, names: list[str], uses: list[str], reporter: Reporter, *, as_json: bool) -> str:
    from graphprep.cli.printed.words import count
    from graphprep.engine.budget import compiling_jobs
    from graphprep.kernels.compiler import levels, manage, shipped
    from graphprep.model.errors import UsageError
    from graphprep.model.shown import compilation
    from graphprep.model.shown.texts import duration, json_text

    if unknown := [name for name in names if name not in levels.of_this_processor()]:
        raise UsageError(
            f"--cpu {unknown[0]}: this machine does not run code for it",
            fix=f"choose of {', '.join(levels.of_this_processor()) or 'none: there are levels of x86-64 alone'}",
        )
    known = manage.known_uses()
    if others := [use for use in uses if use not in known]:
        raise UsageError(f"--for {others[0]}: nothing of this name", fix=f"choose of {', '.join(known)}")
    start = time.perf_counter()
    reporter.stage("compile")
    with compilation.compiling_all() as told:

        def tell(num: int, total: int) -> None:
            told(num, total)
            reporter.advance()

        most = jobs or compiling_jobs()
        num = manage.build_levels(names, shipped.FOLDER, most, tell) if names else manage.build_kernels(most, tell, uses)
    took = duration(time.perf_counter() - start)
    return json_text({"compiled": num}) if as_json else f"compiled {count(num, 'kernel')} in {took}"


def _clean(as_json: bool) -> str:
    from graphprep.cli.printed.words import count, size
    from graphprep.kernels.compiler.manage import clean_kernels
    from graphprep.model.shown.texts import json_text

    num, num_bytes = clean_kernels()
    return json_text({"removed": num, "bytes": num_bytes}) if as_json else f"removed {count(num, 'kernel')}, {size(num_bytes)}"
