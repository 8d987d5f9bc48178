"""Runs that go on where an interrupted one stopped: where their journal lies, and what must be the same."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar, cast

from graphprep.convert.build.write import Settled, StoreBuilder
from graphprep.convert.index.nodes import index
from graphprep.convert.read.decode import Collector, decode
from graphprep.convert.read.plan import Plan
from graphprep.convert.roles.settle import columns
from graphprep.convert.run import Run
from graphprep.convert.shuffle.route_edges import shuffle
from graphprep.model.errors import UsageError
from graphprep.model.options.convert import ConvertOptions
from graphprep.model.version import __version__
from graphprep.storage.faults import display_url
from graphprep.storage.private import TMP_DIR_OPTION
from graphprep.storage.spill.journal import Journal, KeptFolder
from graphprep.storage.write.places import resume_folder
from graphprep.store.assign import GRAPH_METHODS, PARTITION_METHODS, PYTHON_PREFIX

if TYPE_CHECKING:
    from graphprep.model.protocols import Reporter
    from graphprep.storage.read.urls import Storage
    from graphprep.storage.write.publish import StoreWriter

T = TypeVar("T")
_PART = "decode in part"
_BUILD = "build in part"
_PORTION_BYTES = 64 << 20  # of input, or of a store, between one record in the journal and the next, so that these cost little
_PORTIONS = 64  # of a large one: each record tells of all before
# They change nothing in what tasks make, or are looked at again at the end.
_FREE = (
    *("run", "resume", "engine", "scheduler", "worker_index", "overwrite", "allow_empty", "min_nodes", "min_edges"),
    *("bad_records", "edge_id_col"),
)


def journal_folder(out: str, tmp_dir: str | None) -> KeptFolder:
    """Return the folder for what the stages of a run with this OUT make, which need not be there."""
    return KeptFolder(str(resume_folder(out, tmp_dir)))


def tell_where_kept(kept: KeptFolder, writer: StoreWriter, reporter: Reporter) -> None:
    """Say so where a dead run has begun an output, and what that kept lies elsewhere: on its machine, most often."""
    host = writer.dead_host
    if host is not None and not kept.has_journal():
        folder = display_url(str(kept.path.parent))
        reporter.message(
            f"resume: what the run that began this output on {host} kept is not in {folder}, so that all is done again; "
            f"with {TMP_DIR_OPTION} such files lie in a folder that all machines see"
        )


class KeptStages:
    """Runs the stages of a conversion, each of which is done once by all runs that go on."""

    def __init__(self, run: Run, plan: Plan) -> None:
        """Open the journal of a run whose rows are kept.

        Raises UsageError where it was begun with another input or other options.
        """
        assert run.kept is not None
        self.run = run
        self.plan = plan
        self._journal = Journal(run.kept, about_run(run, plan), run.reporter.message)

    def prepare(self) -> Settled:
        """Decode, index and shuffle, from behind the last of these that an earlier run has done."""
        run = self.run
        num_edges = self._last("count")
        if num_edges is not None:
            run.kernels(num_edges)  # what comes behind has them
        settled = self._last("shuffle")
        if settled is None:
            indexed = self._last("index")
            if indexed is None:
                rows = self._last("decode")
                if rows is None:
                    rows = self._keep("decode", decode(run, self.plan, self), _PART)
                indexed = self._keep("index", index(run, rows), "decode")
            if num_edges is None:
                self._keep("count", indexed.decoded.num_edges)
            settled = self._keep("shuffle", columns(run, shuffle(run, indexed)), "index")
        return cast(Settled, settled)

    def checkpoint(self, fresh: StoreBuilder, settled: Settled) -> tuple[StoreBuilder, Callable[[], None]]:
        """See ``Checkpoint``."""
        run, known = self.run, self._known(writer=self.run.writer, index=settled.index)
        found = cast("StoreBuilder | None", self._journal.last(_BUILD, known))
        if found is not None and not found.fits():
            run.reporter.message("resume: under less memory than before the store is built from its beginning")
            found = None
        builder = fresh if found is None else found
        builder.go_on()
        portion_bytes, written = max(_PORTION_BYTES, settled.most_bytes // _PORTIONS), run.writer.num_bytes

        def keep() -> None:
            nonlocal written
            if run.writer.num_bytes - written >= portion_bytes:
                self._journal.keep(_BUILD, builder, known)
                written = run.writer.num_bytes

        return builder, keep

    # ---- portions of what is decoded

    @property
    def portion_bytes(self) -> int:
        """See ``Portions``."""
        return max(_PORTION_BYTES, (self.plan.input.total_bytes or 0) // _PORTIONS)

    def last(self) -> Collector | None:
        """See ``Portions``."""
        return cast("Collector | None", self._last(_PART))

    def keep(self, collector: Collector) -> None:
        """See ``Portions``."""
        self._keep(_PART, collector)

    # ---- the journal

    def _last(self, name: str) -> Any:
        """Return what a stage made in an earlier run; None where there is no such thing."""
        found = self._journal.last(name, self._known())
        if found is not None and self.run.rejects is not None:
            self.run.rejects.restore(found[1])
        return None if found is None else found[0]

    def _keep(self, name: str, made: T, *ends: str) -> T:
        """Record what a stage made, and return it."""
        rejected = None if self.run.rejects is None else self.run.rejects.state()
        self._journal.keep(name, (made, rejected), self._known(), ends)
        return made

    def _known(self, **more: object) -> dict[str, object]:
        """Return the objects that the next run has, too, by name."""
        run = self.run
        names = ("pool", "storage", "engine", "rejects", "reporter", "found_kernels")
        return {"run": run, "plan": self.plan, **{name: getattr(run, name) for name in names}, **more}


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
