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
    """What is known of the stage at work. Bytes are those of the input as stored."""

    name: str
    total_bytes: int | None = None
    records: int = 0
    num_bytes: int = 0
    started_s: float = field(default_factory=_now_s)
    compiled_s: float = field(default_factory=lambda: compilation.done.elapsed_s)

    @property
    def elapsed_s(self) -> float:
        """Return the seconds since the stage began, without those of waiting for kernels."""
        return time.monotonic() - self.started_s - (compilation.done.elapsed_s - self.compiled_s)

    @property
    def remaining_s(self) -> float | None:
        """Return how long the stage goes on at the rate so far; None where that is unknown."""
        if not self.total_bytes or not self.num_bytes:
            return None
        return self.elapsed_s * max(self.total_bytes - self.num_bytes, 0) / self.num_bytes

    def describe(self, *, done: bool) -> str:
        """Return ``decode: 1.2M records, 345 MB of 1.2 GB (29%), 2.1M records/s, 58 MB/s, 0:15 left``."""
        seconds = max(self.elapsed_s, 1e-3)
        parts = []
        if self.records:
            parts.append(f"{quantity(self.records)} records")
        if self.num_bytes:
            share = (
                f" of {size(self.total_bytes)} ({min(100 * self.num_bytes // self.total_bytes, 100)}%)"
                if self.total_bytes
                else ""
            )
            parts.append(size(self.num_bytes) + ("" if done else share))
        if self.records:
            parts.append(f"{quantity(self.records / seconds)} records/s")
        if self.num_bytes:
            parts.append(f"{size(self.num_bytes / seconds)}/s")
        if done:
            parts.append(f"took {duration(seconds)}")
        elif self.remaining_s is not None:
            parts.append(f"{duration(self.remaining_s)} left")
        return f"{self.name}: {', '.join(parts)}" if parts else self.name
