"""Rejected records: counted, and kept in a file as lines of JSON, since there may be as many of them as records."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import IO

from graphprep.model.errors import BadRecord, DataError, UsageError
from graphprep.model.options.checks import parse_error_limit
from graphprep.model.options.convert import ConvertOptions
from graphprep.storage.faults import display_url, plain_words
from graphprep.storage.read.urls import Storage
from graphprep.storage.write.files import check_writable, write_pieces

_MEMORY_BYTES = 1 << 20  # what is kept in memory before there is a file
_PIECE_BYTES = 1 << 20


_quote = json.JSONEncoder(ensure_ascii=False).encode


class Rejects:
    """The records that ``--on-error skip`` leaves out, in the order in which they were found: at most ``most`` of them."""

    def __init__(self, most: int | None = None, folder: str | None = None) -> None:
        self.num = 0
        self._most = most
        self._folder = folder or tempfile.gettempdir()
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(_MEMORY_BYTES, dir=folder)  # noqa: SIM115 - close() does

    def __enter__(self) -> Rejects:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._file.close()

    def add(self, records: Sequence[BadRecord]) -> None:
        """List records.

        Raises DataError for the first that is one too many, and lists that, too.
        """
        if self._most is not None:
            records = records[: self._most + 1 - self.num]
        lines = [f'{{"place": {_quote(record.place)}, "reason": {_quote(record.reason)}}}\n' for record in records]
        with plain_words(self._folder, "--tmp-dir"):
            self._file.write("".join(lines).encode(errors="backslashreplace"))  # names of files need not be UTF-8
        self.num += len(lines)
        if self._most is not None and self.num > self._most:
            raise DataError(
                f"more than {self._most} bad records; this one is one too many: {records[-1].reason}",
                place=records[-1].place,
                fix="repair the input, or raise --max-errors",
            )

    def clear(self) -> None:
        """Forget all, since decoding begins anew."""
        self.num = 0
        self._file.seek(0)
        self._file.truncate()

    def state(self) -> tuple[int, list[bytes]]:
        """Return what ``restore`` takes."""
        return self.num, list(self.pieces())

    def restore(self, state: tuple[int, list[bytes]]) -> None:
        """List what was listed in an earlier run."""
        self.clear()
        self.num = state[0]
        for piece in state[1]:
            self._file.write(piece)

    def pieces(self) -> Iterator[bytes]:
        """Yield the lines, in pieces of bounded size."""
        self._file.seek(0)
        while piece := self._file.read(_PIECE_BYTES):
            yield piece


@contextlib.contextmanager
def listing(storage: Storage, options: ConvertOptions) -> Iterator[Rejects]:
    """Yield what takes the records that are skipped, and write them to ``--bad-records``, also where the run fails.

    Raises UsageError where that file is there.
    """
    url, (most, _) = options.bad_records, parse_error_limit(options.max_errors)
    if url is not None:
        if storage.is_file(url) and not (options.overwrite or options.resume):
            fix = "choose another name, or remove it by hand; convert --overwrite replaces it"
            raise UsageError("the file exists", place=f"--bad-records {display_url(url)}", fix=fix)
        check_writable(storage, url)
    with Rejects(most, options.run.tmp_dir) as rejects:
        try:
            yield rejects
        finally:
            if url is not None:
                write_pieces(storage, url, rejects.pieces())
