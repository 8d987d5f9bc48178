"""What a case is: its sides, their inputs and checks, the peers, and the bars."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
PEERS = HERE / "peers"
LIMITS = ("1GiB", "256MiB")
Check = Callable[[Path], dict[str, float] | None]  # what is told of an output besides


class CheckError(Exception):
    """An output is not what the generated graph says."""


@dataclass(frozen=True)
class Side:
    """One way to do a case's work. ``check`` raises CheckError for a wrong output; it gets what was to be written."""

    name: str
    command: Callable[[Path], list[str]]
    check: Check
    num_edges: int
    input_bytes: int


@dataclass(frozen=True)
class Bar:
    """What is to be reached: ``of``'s number over ``over``'s (or by itself) is at least or at most something."""

    of: str
    over: str
    what: str  # a key of what run.py says of a side: wall_s, cpu_s, edges_per_s, private_bytes …
    least: float = 0.0
    most: float = float("inf")


@dataclass(frozen=True)
class Case:
    """One work and all that do it. ``missing`` says which peers are not compared, and why. ``rounds`` is at most so many."""

    name: str
    title: str
    sides: tuple[Side, ...]
    bars: tuple[Bar, ...] = ()
    missing: dict[str, str] = field(default_factory=dict)
    rounds: int = 100


@dataclass(frozen=True)
class Input:
    """An input that was made: the file or folder, and what is expected of its store."""

    path: Path
    expected: dict
    distinct_edges: int | None = None

    @classmethod
    def find(cls, folder: Path, name: str) -> Input:
        """Find what inputs.py made."""
        expected = json.loads((folder / name / "expected.json").read_text())
        names = ("edges.txt", "edges.csv", "graph")
        distinct = expected.pop("distinct_edges", None)
        return cls(next(path for path in (folder / name / one for one in names) if path.exists()), expected, distinct)

    @property
    def num_edges(self) -> int:
        """Return the number of edges of all types."""
        return sum(self.expected["num_edges"].values())

    @property
    def num_bytes(self) -> int:
        """Return the size of all files."""
        files = [file for file in self.path.rglob("*") if file.is_file()] if self.path.is_dir() else [self.path]
        return sum(file.stat().st_size for file in files)


@dataclass(frozen=True)
class Peers:
    """The peers that this machine has: name to versions, and the others with the reason."""

    python: str
    versions: dict[str, dict[str, str]]
    missing: dict[str, str]

    def command(self, script: str, *args: object) -> list[str]:
        """Return the command line of a peer's script."""
        return [self.python, str(PEERS / script), *map(str, args)]


def graphprep_command(*args: object) -> list[str]:
    """Return the command line of a fresh graphprep process."""
    return [sys.executable, "-m", "graphprep", *map(str, args)]
