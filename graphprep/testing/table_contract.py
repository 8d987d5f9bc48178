"""The suite that every decoder of tables passes: those that ``read`` rows in batches, ours and yours.

Inherit it in a test module, say how to make your decoder, and write its table::

    class TestMine(TableContract):
        message = "field 'dst' must not be negative"
        column = "dst"

        def make(self):
            return MyDecoder()

        def write(self, folder, numbers):
            write_my_table(folder / "t", src=[7] * len(numbers), dst=numbers)
            return [str(folder / "t")]
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from graphprep.convert.read.blocks import read_table
from graphprep.model.errors import BadRecord, DataError
from graphprep.model.protocols import Sources
from graphprep.model.rows import RawRows
from graphprep.storage.read.urls import Storage
from graphprep.testing.contract import check_rows, merge_rows

_SOUND = tuple(range(20))
_FAULTS = ((0,), (1,), (7,), (8,), (19,), (6, 7, 8), (0, 19), (3, 11, 12), tuple(range(20)))
_BATCHES = (1, 3, 8, 100)


class TableContract:
    """Inherit, and define ``make``, ``write``, ``message`` and, where faults name one, ``column``.

    Row r of the table that ``write`` writes stands for ``numbers[r]``, 0 to 19; -1 stands for a row with a fault, whose message
    holds ``message``. Tables of other files, which have no fault, may stand beside it: ``is_mine`` tells spans apart.
    """

    message: ClassVar[str]
    column: ClassVar[str | None] = None

    def make(self) -> Any:
        """Return the decoder."""
        raise NotImplementedError

    def write(self, folder: Path, numbers: Sequence[int]) -> list[str]:
        """Write a table, and return what is to be read."""
        raise NotImplementedError

    def plan(self, storage: Storage, urls: Sequence[str]) -> tuple[Any, Sources]:
        """Return the decoder that reads, and its spans."""
        decoder = self.make()
        return decoder, decoder.plan(storage, urls)

    def is_mine(self, url: str) -> bool:
        """Return whether a table is that with the faults."""
        return True

    # ------------------------------------------------------------------------------------------ helpers

    def read(self, folder: Path, numbers: Sequence[int], max_rows: int, *, skip: bool) -> tuple[list[RawRows], list[BadRecord]]:
        """Write a table, and read it in batches; returns (batches, rejected rows). Raises DataError at the first fault."""
        folder.mkdir()
        rows: list[RawRows] = []
        bad: list[BadRecord] = []
        with Storage(tmp_dir=str(folder)) as storage:
            decoder, sources = self.plan(storage, self.write(folder, numbers))
            for span in sources.spans:
                if span.kind == "table" and self.is_mine(span.url):
                    for found, rejected, _ in read_table(decoder, storage, span, max_rows, skip):
                        rows += [] if found is None else [found]
                        bad += rejected
        return rows, bad

    def ends_of_places(self, rows: Sequence[int]) -> list[str]:
        """Return what the places of rows end with."""
        column = "" if self.column is None else f", column {self.column!r}"
        return [f": row {row}{column}" for row in rows]

    # ------------------------------------------------------------------------------------------ what must hold

    def test_batches_give_the_same_rows(self, tmp_path: Path) -> None:
        """A table is the same rows however it is cut into batches."""
        whole, _ = self.read(tmp_path / "whole", _SOUND, 1000, skip=False)
        assert merge_rows(whole)[1] == len(_SOUND)
        for max_rows in _BATCHES:
            batches, _ = self.read(tmp_path / str(max_rows), _SOUND, max_rows, skip=False)
            assert merge_rows(batches) == merge_rows(whole)
            for rows in batches:
                check_rows(rows)

    @pytest.mark.parametrize("faults", _FAULTS, ids=str)
    def test_the_first_fault_is_told_with_its_row(self, tmp_path: Path, faults: tuple[int, ...]) -> None:
        """Whatever the batches, also behind the first one."""
        for max_rows in _BATCHES:
            with pytest.raises(DataError) as caught:
                self.read(tmp_path / str(max_rows), _with_faults(faults), max_rows, skip=False)
            assert self.message in caught.value.message
            assert caught.value.place.endswith(self.ends_of_places(faults)[0])

    @pytest.mark.parametrize("faults", _FAULTS, ids=str)
    def test_all_other_rows_are_left_where_faults_are_skipped(self, tmp_path: Path, faults: tuple[int, ...]) -> None:
        """Each faulty row is told, and the others are those of a table without them."""
        kept = [number for number in _SOUND if number not in faults]
        expected, _ = self.read(tmp_path / "sound", kept, 1000, skip=False)
        for max_rows in _BATCHES:
            rows, bad = self.read(tmp_path / str(max_rows), _with_faults(faults), max_rows, skip=True)
            assert merge_rows(rows) == merge_rows(expected)
            for one, end in zip(bad, self.ends_of_places(faults), strict=True):
                assert one.place.endswith(end)
                assert self.message in one.reason


def _with_faults(faults: Sequence[int]) -> list[int]:
    return [-1 if number in faults else number for number in _SOUND]
