"""What a device did in a stage, what it did piece by piece, and what it left to the CPU: counted, to be told with ``-v``."""

from __future__ import annotations

import threading
from collections import Counter


class Tally:
    """How often each thing happened that is worth a word; threads note at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    def note(self, what: str) -> None:
        """Count something once more."""
        with self._lock:
            self._counts[what] += 1

    def tell(self) -> str:
        """Return what was counted since the last time: ``12 x sort_rows; 3 x sort_rows too large at once``; "" for nothing."""
        with self._lock:
            counts, self._counts = self._counts, Counter()
        return "; ".join(f"{count} x {what}" for what, count in sorted(counts.items()))
