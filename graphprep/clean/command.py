"""``clean``: look at places, and remove what no run will come back for."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from graphprep.clean.leftovers import Found, Removal
from graphprep.clean.local import find_local, find_temporary
from graphprep.clean.remote import find_remote
from graphprep.model.errors import GraphprepError, StorageError, UsageError
from graphprep.model.options.clean import CleanReport, Leftover
from graphprep.storage.faults import plain_words
from graphprep.storage.read.urls import STDIN, Storage, local_path


def clean(places: Sequence[str], storage: Storage, *, dry_run: bool = False, all_dead: bool = False) -> CleanReport:
    """Remove what runs that are dead left at ``places``: outputs, or folders in which outputs and temporary files lie.

    ``all_dead``: runs of which nobody here can tell are dead, too. What cannot be removed is in the report, and the rest goes.
    Raises UsageError for a place that has no name, StorageError where one cannot be looked at.
    """
    removed: dict[tuple[str, str], Leftover] = {}
    kept: dict[tuple[str, str], Leftover] = {}
    failures: dict[tuple[str, str], StorageError] = {}
    removal = Removal(dry_run, all_dead, partial(_is_merged, storage))
    for place in places:
        if place in ("", STDIN):
            raise UsageError("the place has no name", fix="name an output, or a folder of outputs")
        with plain_words(place):
            for found in _find(place, storage, removal):
                left = found.leftover
                key = left.place, left.kind
                if key in removed:
                    continue
                try:
                    reason = found.remove()
                    (kept if reason else removed)[key] = replace(left, reason=reason)
                except StorageError as error:
                    failures[key] = error
    gone, stays = (tuple(some[key] for key in sorted(some)) for some in (removed, kept))
    return CleanReport(gone, stays, dry_run, tuple(failures[key] for key in sorted(failures)))


def _is_merged(storage: Storage, out: str) -> bool:
    """Return whether a store was made of what lies in its workers' folder: a merge was killed before it removed that."""
    from graphprep.convert.units.folder import UnitFolder
    from graphprep.convert.units.merge import num_merged

    with contextlib.suppress(GraphprepError), UnitFolder(storage, out) as folder:
        return num_merged(folder, storage) > 0
    return False


def _find(place: str, storage: Storage, removal: Removal) -> Iterator[Found]:
    from graphprep.convert.resume import journal_folder

    path = local_path(place)
    if path is None:
        yield from find_remote(place, storage, removal)
        journal = journal_folder(place, None).path
    else:
        yield from find_local(Path(path), removal)
        journal = journal_folder(place, str(Path(path).absolute().parent)).path
    yield from find_temporary(journal, removal)
