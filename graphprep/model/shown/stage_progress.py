"""How far a stage is, and what it says of that."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from graphprep.model.shown import compilation
from graphprep.model.shown.texts import duration, quantity, size


def _now_s() -> float:
    return time.monotonic()


@dataclass(eq=False)
class StageProgress:
    """What is known of the stage at work. Bytes are those of the input as stored, or of what is written."""

    name: str
    total_bytes: int | None = None
    total_records: int | None = None
    records: int = 0
    num_bytes: int = 0
    started_s: float = field(default_factory=_now_s)
    compiled_s: float = field(default_factory=lambda: compilation.done.elapsed_s)

    @property
    def elapsed_s(self) -> float:
        """Return the seconds since the stage began, without those of waiting for kernels."""
        return time.monotonic() - self.started_s - (compilation.done.elapsed_s - self.compiled_s)

    @property
    def share(self) -> float | None:
        """Return how much of the stage is done, 0 to 1; None where that is unknown. Totals may be estimates."""
        done, total = (self.num_bytes, self.total_bytes) if self.total_bytes else (self.records, self.total_records)
        return min(1.0, done / total) if total else None

    @property
    def remaining_s(self) -> float | None:
        """Return how long the stage goes on at the rate so far; None where that is unknown."""
        share = self.share
        return self.elapsed_s * (1 - share) / share if share else None

    def rates(self) -> list[str]:
        """Return records and bytes a second in words, as far as there are any."""
        seconds = max(self.elapsed_s, 1e-3)
        told = [f"{quantity(self.records / seconds)} records/s"] if self.records else []
        return told + ([f"{size(self.num_bytes / seconds)}/s"] if self.num_bytes else [])

    def describe(self, *, done: bool) -> str:
        """Return ``decode: 1.2M records, 345 MB of 1.2 GB (29%), 2.1M records/s, 58 MB/s, 0:15 left``."""
        parts = []
        percent = "" if done or self.share is None else f"{int(100 * self.share)}%"
        if self.records:
            share = f" of {quantity(self.total_records)} ({percent})" if percent and self.total_records else ""
            parts.append(f"{quantity(self.records)}{share} records")
        if self.num_bytes:
            share = f" of {size(self.total_bytes)} ({percent})" if percent and self.total_bytes else ""
            parts.append(size(self.num_bytes) + share)
        parts += self.rates()
        if done:
            parts.append(f"took {duration(max(self.elapsed_s, 1e-3))}")
        elif self.remaining_s is not None:
            parts.append(f"{duration(self.remaining_s)} left")
        return f"{self.name}: {', '.join(parts)}" if parts else self.name
