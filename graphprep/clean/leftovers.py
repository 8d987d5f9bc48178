"""Leftovers as they are found, and what removes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from graphprep.model.errors import StorageError
from graphprep.model.options.clean import Leftover
from graphprep.storage.faults import display_url, plain_words

WORKERS_KIND = "what workers decoded"
_WORKERS_FILE = re.compile(r"run\.json|unit-\d+-[0-9a-f-]+(\.\d+\.[0-9a-f]+)?|\.[0-9a-f]{8}|\..+\.graphprep-[0-9a-f]{8}")


@dataclass(frozen=True)
class Removal:
    """``dry_run``: nothing is removed. ``all_dead``: of a run of which nobody here can tell, it is believed.

    ``is_merged`` returns whether the store at an output was made of what lies in its workers' folder.
    """

    dry_run: bool
    all_dead: bool
    is_merged: Callable[[str], bool]

    def why_workers_stay(self, out: str, names: Iterable[str]) -> str:
        """Return why a folder that has the name of what workers decoded for ``out`` stays; ``names``: of the files in it."""
        strange = next((name for name in sorted(names) if not _WORKERS_FILE.fullmatch(name)), None)
        if strange is not None:
            return f"it holds {display_url(strange)}, which no worker wrote"
        is_dead = self.all_dead or self.is_merged(out)
        return "" if is_dead else "workers of other machines may still add to it, or merge read it (--all-dead)"


@dataclass
class Found:
    """A leftover, and what removes it: that returns why it is to stay, an empty text where it is gone.

    ``needs_claim``: as long as it stays, so must what tells whose it is.
    """

    leftover: Leftover
    removal: Callable[[], str] = str
    needs_claim: bool = False

    def remove(self) -> str:
        """Remove it; return why it is to stay. Raises StorageError where it cannot be removed."""
        try:
            with plain_words(self.leftover.place):
                return self.leftover.reason or self.removal()
        except StorageError as error:
            self.needs_claim = True
            fix = error.fix.removesuffix(", or choose another place")
            raise StorageError(f"cannot be removed: {error.message}", place=error.place, fix=fix) from error
