"""The reporter that tells nothing to anybody."""

from __future__ import annotations


class QuietReporter:
    """Tells nothing to anybody. ``is_quiet`` says so: what it would be told belongs into the summary."""

    is_quiet = True

    def stage(self, name: str, *, total_bytes: int | None = None) -> None:
        """See ``Reporter.stage``."""

    def advance(self, *, records: int = 0, num_bytes: int = 0) -> None:
        """See ``Reporter.advance``."""

    def message(self, text: str) -> None:
        """See ``Reporter.message``."""
