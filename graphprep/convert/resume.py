"""Runs that go on where an interrupted one stopped: where their journal lies, and what must be the same."""

from __future__ import annotations

import dataclasses
import hashlib
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from graphprep.convert.build.write import StoreBuilder
from graphprep.convert.decoded.rejects import Rejects
from graphprep.convert.read.decode import Collector, DecodeSettings
from graphprep.convert.read.plan import Plan
from graphprep.convert.run import Elsewhere, Run
from graphprep.model.errors import UsageError
from graphprep.model.options.convert import ConvertOptions
from graphprep.model.version import __version__
from graphprep.storage.faults import display_url
from graphprep.storage.private import TMP_DIR_OPTION
from graphprep.storage.read.urls import local_path
from graphprep.storage.spill.journal import Journal, KeptFolder
from graphprep.store.assign import GRAPH_METHODS, PARTITION_METHODS, PYTHON_PREFIX

if TYPE_CHECKING:
    from graphprep.model.protocols import Reporter
    from graphprep.storage.read.urls import Storage
    from graphprep.storage.write.publish import StoreWriter

T = TypeVar("T")
_BUILD = "build in part"
_PORTION_BYTES = 64 << 20  # of input, or of a store, between one record in the journal and the next, so that these cost little
_PORTIONS = 64  # of a large one: each record tells of all before
# They change nothing in what tasks make, or are looked at again at the end.
_FREE = (
    *("run", "resume", "engine", "scheduler", "worker_index", "overwrite", "allow_empty", "min_nodes", "min_edges"),
    *("bad_records", "edge_id_col"),
)


def journal_folder(out: str, tmp_dir: str | None) -> KeptFolder:
    """Return the folder for what the tasks of a run with this OUT make, which need not be there."""
    path = local_path(out)
    place = str(Path(path).absolute()) if path is not None else out.rstrip("/")
    digest = hashlib.sha256(place.encode(errors="surrogateescape")).hexdigest()[:16]
    return KeptFolder(str(Path(tmp_dir or tempfile.gettempdir()) / f".graphprep-resume-{digest}"))


def tell_where_kept(kept: KeptFolder, writer: StoreWriter, reporter: Reporter) -> None:
    """Say so where a dead run has begun an output, and what that kept lies elsewhere: on its machine, most often."""
    host = writer.dead_host
    if host is not None and not kept.has_journal():
        folder = display_url(str(kept.path.parent))
        reporter.message(
            f"resume: what the run that began this output on {host} kept is not in {folder}, so that all is done again; "
            f"with {TMP_DIR_OPTION} such files lie in a folder that all machines see"
        )


class Tasks:
    """The tasks of a run, each of which is done once by all runs that go on."""

    def __init__(self, run: Run, known: Plan, rejects: Rejects | None, elsewhere: Elsewhere | None = None) -> None:
        """Open the journal of a run whose rows are kept; ``elsewhere`` its input may be decoded.

        Raises UsageError where it was begun with another input or other options.
        """
        self.run = run
        self.known = known
        self.rejects = rejects
        self.elsewhere = elsewhere
        self._journal = None if run.kept is None else Journal(run.kept, about_run(run, known), run.ledger.reporter.message)

    def do(self, name: str, make: Callable[[], T], ends: tuple[str, ...] = (), **known: object) -> T:
        """Return what a task makes; ``known`` are objects in it that another run has, too. See ``Journal.task``."""
        if self._journal is None:
            return make()
        found = self.last(name, known)
        return self.keep(name, make(), known, ends) if found is None else cast(T, found)

    def builder(self, fresh: StoreBuilder, num_bytes: int, **known: object) -> tuple[StoreBuilder, Callable[[], None] | None]:
        """Return what builds the store, as an earlier run left it where that can be, and what records it; see ``do``.

        ``num_bytes`` is what the rows take, at most.
        """
        journal = self._journal
        if journal is None:
            return fresh, None
        found = cast("StoreBuilder | None", journal.last(_BUILD, self._known(known)))
        if found is not None and not found.fits(fresh.memory):
            self.run.ledger.reporter.message("resume: under less memory than before the store is built from its beginning")
            found = None
        builder = fresh if found is None else found
        builder.go_on()
        portion_bytes, written = max(_PORTION_BYTES, num_bytes // _PORTIONS), builder.writer.num_bytes

        def keep() -> None:
            nonlocal written
            if builder.writer.num_bytes - written >= portion_bytes:
                journal.keep(_BUILD, builder, self._known(known))
                written = builder.writer.num_bytes

        return builder, keep

    def portions(self, name: str, settings: DecodeSettings) -> KeptPortions | None:
        """Return what keeps the portions of a task that decodes; None where nothing is kept."""
        return None if self._journal is None else KeptPortions(self, name, settings)

    def last(self, name: str, known: Mapping[str, object]) -> Any:
        """Return what a task made in an earlier run; None where there is no such thing."""
        assert self._journal is not None
        found = self._journal.last(name, self._known(known))
        if found is not None and self.rejects is not None:
            self.rejects.restore(found[1])
        return None if found is None else found[0]

    def keep(self, name: str, made: T, known: Mapping[str, object], ends: tuple[str, ...] = ()) -> T:
        """Record what a task made, and return it."""
        assert self._journal is not None
        rejected = None if self.rejects is None else self.rejects.state()
        self._journal.keep(name, (made, rejected), self._known(known), ends)
        return made

    def _known(self, known: Mapping[str, object]) -> dict[str, object]:
        run = self.run
        same = {"pool": run.pool, "storage": run.storage, "engine": run.engine, "rejects": self.rejects}
        return {**same, "reporter": run.ledger.reporter, **known}


class KeptPortions:
    """See ``Portions``: a task that is recorded again and again. ``settings`` are those of the run that began to decode."""

    def __init__(self, tasks: Tasks, name: str, settings: DecodeSettings) -> None:
        self.settings = settings
        self._tasks = tasks
        self._name = name

    @property
    def portion_bytes(self) -> int:
        """See ``Portions``."""
        return max(_PORTION_BYTES, (self._tasks.known.input.total_bytes or 0) // _PORTIONS)

    def last(self) -> Collector | None:
        """See ``Portions``."""
        collector = cast("Collector | None", self._tasks.last(self._name, {}))
        if collector is not None:
            self.settings = collector.settings
        return collector

    def keep(self, collector: Collector) -> None:
        """See ``Portions``."""
        self._tasks.keep(self._name, collector, {})


def about_run(run: Run, known: Plan, flag: str = "--resume") -> dict[str, str]:
    """Return what must be the same for a run to go on: the version, options, and files. Raises UsageError for a pipe."""
    options = run.options
    about = {"version": __version__, "input": " ".join(map(display_url, run.inputs))}
    for name, value in dataclasses.asdict(dataclasses.replace(options, graph=known.input.graph)).items():
        if name not in _FREE:
            about[f"option {name}"] = str(value)
    return about | about_files(run, known, flag)


def about_files(run: Run, known: Plan, flag: str) -> dict[str, str]:
    """Return the states of all files that are read. Raises UsageError for a pipe."""
    storage, about = run.storage, {}
    for url in dict.fromkeys(_files(run.options, known, storage)):
        if storage.is_spooled(url):
            raise UsageError(
                f"{flag} needs an input that can be read again", place=display_url(url), fix="write it to a file first"
            )
        about[display_url(url)] = storage.stamp(url)
    return about


def _files(options: ConvertOptions, known: Plan, storage: Storage) -> Iterator[str]:
    """Yield the files that are read."""
    for span in known.input.sources.spans:
        yield span.url
    for flag in known.flags:
        yield from (storage.join(flag.base, file) if flag.base else file for file in flag.files)
    given = [options.schema, options.decoder_options.get("decoder_options_file")]
    by = options.partition_by
    if by not in (*PARTITION_METHODS, *GRAPH_METHODS) and not by.startswith(PYTHON_PREFIX):
        given += [entry.url for entry in storage.list_dir(by)] if storage.is_dir(by) else [by]
    yield from filter(None, given)
