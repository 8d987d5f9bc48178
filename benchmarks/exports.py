"""A raw dump to a trainer's own files in one command, against the trainer's own converter: the files must be the same bytes."""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path

from case import LIMITS, Bar, Case, CheckError, Input, Peers, Side, graphprep_command

_PEER = "deepgnn-ge, decoder + writer"
_OURS = frozenset({"export.json", "types.json"})
_BY_VALUE = frozenset({"meta.json"})  # the peer's script leaves out what only its converter writes


def deepgnn_case(format: str, given: Input, peers: Peers) -> Case:
    """Return the case of one of DeepGNN's text formats: text to the files of its engine."""
    files = SameFiles()
    side = partial(_side, given, files.check)
    sides = [side("graphprep", lambda out: _command(format, given, out))]
    sides.append(side(f"graphprep {LIMITS[1]}", lambda out: _command(format, given, out, "--memory-limit", LIMITS[1])))
    missing, bars = {}, []
    if "deepgnn-ge" in peers.versions:
        sides.append(side(_PEER, lambda out: peers.command("deepgnn_ge.py", "direct", format, given.path, out / "files")))
        bars.append(Bar(_PEER, "graphprep", "cpu_s", least=15.0))
    else:
        missing = {"deepgnn-ge": peers.missing["deepgnn-ge"]}
    return Case(f"export-deepgnn-{format}", f"DeepGNN {format} to the engine's files", tuple(sides), tuple(bars), missing, 3)


def _side(given: Input, check: object, name: str, command: object) -> Side:
    return Side(name, command, check, given.num_edges, given.num_bytes)


def _command(format: str, given: Input, out: Path, *flags: str) -> list[str]:
    """Convert to a store of the layout that the files want, and export it, in one process."""
    convert = ("convert", "-q", given.path, out / "store", "--format", format, "--layout", "csr", *flags)
    return graphprep_command(*convert, "--export", f"deepgnn={out / 'files'}")


class SameFiles:
    """Compares the files of all sides, byte for byte, with those of the first output."""

    def __init__(self) -> None:
        self._files: dict[str, bytes] | None = None

    def check(self, out: Path) -> None:
        """Raise CheckError where a file differs."""
        found = {}
        for path in sorted((out / "files").iterdir()):
            if path.name not in _OURS | _BY_VALUE:
                with path.open("rb") as file:
                    found[path.name] = hashlib.file_digest(file, "blake2b").digest()
        if self._files is None:
            self._files = found
        if found != self._files:
            differing = {name for name in found.keys() | self._files.keys() if found.get(name) != self._files.get(name)}
            raise CheckError(f"{out}: {', '.join(sorted(differing))} differ from those of graphprep")
