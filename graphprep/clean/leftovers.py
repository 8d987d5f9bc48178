"""Leftovers as they are found, and what removes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from graphprep.model.options.clean import Leftover

WORKERS_KIND = "what workers decoded"
WORKERS_REASON = "workers of other machines may still add to it, or merge read it (--all-dead)"


@dataclass(frozen=True)
class Removal:
    """``dry_run``: nothing is removed. ``all_dead``: of a run of which nobody here can tell, it is believed."""

    dry_run: bool
    all_dead: bool


@dataclass(frozen=True)
class Found:
    """A leftover, and what removes it: that returns why it could not be, an empty text where it is gone."""

    leftover: Leftover
    remove: Callable[[], str] = str
