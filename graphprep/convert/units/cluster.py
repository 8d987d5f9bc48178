"""An input that the workers of an engine decode, unit by unit, while this process takes what they found."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from types import TracebackType

from graphprep.convert.read.apart import FoundBlock, Reading, read_found
from graphprep.convert.read.decode import decode_settings
from graphprep.convert.read.plan import Elsewhere, Plan
from graphprep.convert.resume import about_files
from graphprep.convert.run import Run
from graphprep.convert.units.cut import cut_input
from graphprep.engine.dask_cluster import DaskCluster
from graphprep.engine.local import map_ordered
from graphprep.engine.ray_cluster import RayCluster
from graphprep.model.errors import StorageError
from graphprep.model.options.convert import ConvertOptions
from graphprep.storage.faults import display_url
from graphprep.storage.private import PrivateFolder
from graphprep.storage.read.urls import Storage, local_path
from graphprep.storage.spill.segments import BrokenSegmentError
from graphprep.storage.write.files import write_pieces
from graphprep.storage.write.places import folder_beside

_PROBE = "probe"
_CLUSTERS = {"dask": DaskCluster, "ray": RayCluster}


class OnCluster:
    """Lets the workers of a cluster decode. Called with the run and its plan, within its context.

    Segments lie in a folder in ``--tmp-dir`` or beside OUT, and go when they are read. The scheduler sees the tasks, which name
    files, and of their results names, sizes and checksums.
    """

    def __init__(self, out: str, options: ConvertOptions) -> None:
        self._out = out.rstrip("/")
        self._options = options
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> OnCluster:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stack.close()

    def __call__(self, run: Run, known: Plan) -> Plan:
        """Cut the input, and get ready to have its units decoded.

        Raises UsageError where the input is a stream, or where a worker has other versions or sees other files.
        """
        about_files(run, known, f"--engine {self._options.engine}")
        storage, settings = run.storage, decode_settings(run, known)
        reading = Reading(settings.block_bytes, settings.limit_bytes, settings.max_rows)
        engine = _CLUSTERS[self._options.engine](self._options.scheduler, run.memory.threads)
        self._stack.callback(engine.close)
        cut = cut_input(known, storage, reading, engine.num_workers)
        for url in {span.url for span in cut.known.input.sources.spans}:
            storage.watch(url)
        folder = self._folder(storage)
        theirs = Storage(self._options.run.storage_options)
        write_pieces(storage, f"{folder}/{_PROBE}", [b"here"])
        engine.check_folder(partial(_sees, theirs, f"{folder}/{_PROBE}"), display_url(folder))
        task = partial(cut.task, storage=theirs, folder=folder, skip=settings.skip, room_bytes=settings.room_bytes)

        def blocks() -> Iterator[FoundBlock]:
            tasks = (task(unit, name=f"unit-{unit.number:06}") for unit in cut.units)
            for segment in map_ordered(engine.run, tasks, engine.num_workers, cancel=engine.cancel):
                try:
                    yield from read_found(storage, folder, segment)
                except BrokenSegmentError as error:
                    place = display_url(str(error))
                    raise StorageError(
                        "is not what was written", place=place, fix="check the storage, then run again"
                    ) from None
                _remove(storage, f"{folder}/{segment.name}")

        return replace(cut.known, elsewhere=Elsewhere(reading, blocks))

    def _folder(self, storage: Storage) -> str:
        """Make the folder: where the workers run here, any will do."""
        tmp_dir = self._options.run.tmp_dir
        if tmp_dir is not None or self._options.scheduler is None or local_path(self._out) is not None:
            private = PrivateFolder(tmp_dir or folder_beside(self._out))
            self._stack.callback(private.remove)
            return private.make()
        parent, _, name = self._out.rpartition("/")
        folder = f"{parent}/.{name}.graphprep-{secrets.token_hex(4)}"
        self._stack.callback(_remove_all, storage, folder)
        return folder


def _sees(storage: Storage, url: str) -> bool:
    """Return whether a file can be read."""
    with contextlib.suppress(Exception), storage:
        return storage.read_range(url, 0, 4) == b"here"
    return False


def _remove(storage: Storage, url: str) -> None:
    storage.forget(url)
    with contextlib.suppress(Exception):
        fs, path = storage.filesystem(url)
        fs.rm_file(path)


def _remove_all(storage: Storage, folder: str) -> None:
    storage.forget(folder)
    with contextlib.suppress(Exception):
        fs, path = storage.filesystem(folder)
        fs.invalidate_cache()
        fs.rm(path, recursive=True)
