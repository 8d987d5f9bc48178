"""What a store is written through: files that are there whole or not at all, at a place that is shown at the end."""

from __future__ import annotations

from typing import Protocol


class Sink(Protocol):
    """A file that is being written: there whole after ``commit``, gone after ``discard``."""

    def write(self, data: bytes | memoryview) -> object:
        """Add bytes."""

    def commit(self) -> None:
        """Finish the file."""

    def discard(self) -> None:
        """Forget the file."""


class Target(Protocol):
    """Where the files of a store go until they are shown. Paths are relative to the store."""

    def begin(self) -> None:
        """Make the place. Raises where it cannot be written to."""

    @property
    def dead_host(self) -> str | None:
        """Return the machine of a dead run that had begun to write there; None where there was none, or nobody knows."""

    def open(self, path: str, num_bytes: int) -> Sink:
        """Begin a file of a size that is known."""

    def link(self, path: str, source: str, *, own: bool = False) -> bool:
        """Let ``path`` be another name of the local file ``source``, one of the run's ``own``; False where that cannot be."""

    def url(self, path: str) -> str:
        """Return where a finished file can be read."""

    def show(self) -> None:
        """Show what was written, at once or metadata.json last."""

    def remove(self) -> None:
        """Remove what was written."""
