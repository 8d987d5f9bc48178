"""What is measured within the time that there is, kept as it is found; what was to be reached."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

MAIN, LARGE, SMALL, TOY = 100_000_000, 1_000_000_000, 10_000_000, 60  # edges


@dataclass
class Bench:
    """What is measured, until the time is over."""

    is_toy: bool
    deadline: float
    path: Path
    about: dict[str, Any] = field(default_factory=dict)
    results: list[dict[str, Any]] = field(default_factory=list)
    costs: dict[tuple[Any, ...], float] = field(default_factory=dict)  # seconds an item, of what was measured
    checked: set[tuple[str, str]] = field(default_factory=set)  # kernels and types
    timed_s: float = 0.0

    def note(self, name: str, **values: Any) -> None:
        """Keep and print a result; what was found so far is on disk."""
        self.results.append({"case": name, **values})
        shown = "  ".join(
            f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}" for key, value in values.items()
        )
        print(f"{name:34} {shown}", flush=True)
        self.write()

    def run(self, name: str, measure: Callable[[], dict[str, Any]], **values: Any) -> None:
        """Measure something, if there is time for it, by what fewer items took; what fails is noted with its reason."""
        items, key = values.get("items", 0), (name, values.get("type"), values.get("device"))
        left, before = self.deadline - time.monotonic(), self.timed_s
        if left <= self.costs.get(key, 0.0) * items:
            self.note(name, **values, skipped=f"left out: {max(0, left):.0f} s are left")
            return
        try:
            self.note(name, **values, **measure())
        except AssertionError as error:
            self.note(name, **values, wrong=words_of(error))
        except Exception as error:
            self.note(name, **values, skipped=words_of(error))
        if items:
            self.costs[key] = 2 * (self.timed_s - before) / items  # once more for making the input and checking

    def median(
        self, run: Callable[[], Any], wait: Callable[[], Any], rounds: int = 5, prepare: Callable[[], Any] | None = None
    ) -> float:
        """Return the median of the seconds that something takes, after a first go that compiles."""
        seconds = []
        for _ in range(2 if self.is_toy else 1 + rounds):
            if prepare is not None:
                prepare()
            wait()
            start = time.perf_counter()
            run()
            wait()
            seconds.append(time.perf_counter() - start)
        self.timed_s += sum(seconds[1:])
        return statistics.median(seconds[1:])

    def rate(self, name: str) -> float:
        """Return the GB a second that a transfer reached, 0 where it was not measured."""
        return next((one["gb_s"] for one in self.results if one["case"] == name and "gb_s" in one), 0.0)

    def write(self) -> None:
        """Write what was found, and where."""
        left_out = [
            f"{one['case']} {one.get('items', '')} {one.get('type', '')}".strip() for one in self.results if "skipped" in one
        ]
        content = {"about": self.about, "results": self.results, "left_out": left_out, "targets": verdicts(self)}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(content, indent=1) + "\n")


def words_of(error: Exception) -> str:
    return " ".join(str(error).split())[:160] or type(error).__name__


class Target(NamedTuple):
    """What is to be reached on one H100 or H200 that is not shared: a number of a case's result, the best of those found."""

    name: str
    case: str
    number: str
    wanted: float


TARGETS = (
    Target("COO to CSR with edge IDs, 32 bits: G edges/s", "COO to CSR", "g_items_s", 5.0),
    Target("the same with CUB's sort: G edges/s", "COO to CSR, with CUB's sort", "g_items_s", 15.0),
    Target("the same streamed from pinned memory: share of what PCIe carries", "COO to CSR, streamed", "share_of_pcie", 0.6),
    Target("the same over torch's sort-based build: times faster", "COO to CSR, torch", "ours_is_faster_by", 2.0),
)


def verdicts(bench: Bench) -> list[dict[str, Any]]:
    """Say of each target whether it was reached; nothing where it was not measured or only simulated."""
    told = []
    for target in TARGETS:
        same = [one for one in bench.results if one["case"] == target.case and one.get("type") == "int32"]
        found = max((one[target.number] for one in same if target.number in one), default=None)
        verdict = "not measured" if found is None else "reached" if found >= target.wanted else "missed"
        why = next((one["skipped"] for one in same if "skipped" in one), None) if found is None else None
        verdict = "simulated: no verdict" if bench.is_toy else verdict
        told.append({"target": target.name, "wanted": target.wanted, "found": found, "verdict": verdict, "why": why})
    return told
