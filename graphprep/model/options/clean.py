"""What ``clean`` tells: what runs that failed or were killed had left."""

from __future__ import annotations

from dataclasses import dataclass

from graphprep.model.errors import StorageError
from graphprep.model.shown.results import Card, Showable
from graphprep.model.shown.texts import count, size


@dataclass(frozen=True)
class Leftover:
    """What a run left at ``place``, a path or URL. ``reason`` says why it stays; an empty text: it goes."""

    place: str
    kind: str
    num_files: int
    num_bytes: int
    reason: str = ""

    def lines(self, verb: str) -> list[str]:
        """Say what became of it, and below why it stays."""
        told = f"{verb} {self.place}: {self.kind}"
        if self.num_bytes or self.num_files > 1:
            told += f", {count(self.num_files, 'file')}, {size(self.num_bytes)}"
        return [told, f"  {self.reason}"] if self.reason else [told]


@dataclass(frozen=True, repr=False)
class CleanReport(Showable):
    """What was removed, or would be (``dry_run``), and what stays; both by place.

    ``failures`` say of each leftover that could not be removed what went wrong.
    """

    removed: tuple[Leftover, ...]
    kept: tuple[Leftover, ...]
    dry_run: bool
    failures: tuple[StorageError, ...] = ()

    @property
    def num_bytes(self) -> int:
        """Return the size of what was removed."""
        return sum(one.num_bytes for one in self.removed)

    @property
    def total(self) -> str:
        """Say in one line how much was removed."""
        total = f"{count(len(self.removed), 'leftover')}, {size(self.num_bytes)}" if self.removed else "nothing"
        return f"{self._verb} {total}" + (f", {len(self.failures):,} could not be removed" if self.failures else "")

    def lines(self) -> list[str]:
        """Return lines for each leftover that went or is to stay, and the total."""
        told = [(self._verb, one) for one in self.removed] + [("kept", one) for one in self.kept]
        return [*(line for verb, one in told for line in one.lines(verb)), self.total]

    @property
    def _verb(self) -> str:
        return "would remove" if self.dry_run else "removed"

    def card(self) -> Card:
        """See ``Showable``."""
        rows = [(self._verb, one.place, size(one.num_bytes), one.kind) for one in self.removed]
        rows += [("kept", one.place, size(one.num_bytes), f"{one.kind}: {one.reason}") for one in self.kept]
        return Card(self.total, tuple(rows), tuple(f"error: {one.place}: {one.message}" for one in self.failures))
