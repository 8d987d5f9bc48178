"""The golden cases: a folder each, with case.json (inputs and options) and store/ (every byte of the output)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).resolve().parent
SAMPLE_DATA = GOLDEN.parent.parent / "sample_data"
METHODS = ("range", "hash", "modulo", "random")


@dataclass(frozen=True)
class Case:
    """``inputs`` and a partition file are relative to sample_data; ``options`` are fields of ``ConvertOptions``."""

    name: str
    inputs: tuple[str, ...]
    options: dict[str, Any]

    @property
    def store(self) -> Path:
        return GOLDEN / self.name / "store"

    @property
    def input_paths(self) -> list[Path]:
        return [SAMPLE_DATA / one for one in self.inputs]

    def resolved_options(self) -> dict[str, Any]:
        """The options with the partition file's path made absolute."""
        method = self.options.get("partition_by", "range")
        return self.options if method in METHODS else self.options | {"partition_by": str(SAMPLE_DATA / method)}


def load_cases() -> list[Case]:
    """All cases, by name."""
    found = []
    for path in sorted(GOLDEN.glob("*/case.json")):
        value = json.loads(path.read_text())
        found.append(Case(path.parent.name, tuple(value["inputs"]), value["options"]))
    return found


def load_rewritten(folder: str) -> list[tuple[Case, Path, dict[str, Any]]]:
    """The cases of ``reordered`` or ``partitioned``: (the golden case that is read, the golden store, options), by name."""
    cases = {case.name: case for case in load_cases()}
    found = []
    for path in sorted((GOLDEN / folder).glob("*/case.json")):
        value = json.loads(path.read_text())
        found.append((cases[value["store"]], path.parent / "store", value["options"]))
    return found


def read_store(folder: Path) -> dict[str, bytes]:
    """Every file of a store but provenance.json, by its path."""
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    files.pop("provenance.json", None)
    return files
