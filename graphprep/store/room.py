"""Whether there is room for a run: what it takes of the disks on which it writes, and of memory for counts that are stated.

Counts of metadata and options are held against the limit, the disk and index dtypes; nothing is allocated, and nothing decoded,
before they have passed; and no store is written of fewer nodes and edges, or of more faults, than options allow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from graphprep.engine.budget import format_size
from graphprep.engine.ledger import EDGE_BYTES, MemoryPlan
from graphprep.model.counts import MOST_COUNT
from graphprep.model.errors import DataError, GraphprepError, MemoryLimitError, StorageError, UsageError
from graphprep.model.metadata import GraphMetadata
from graphprep.model.options.checks import parse_error_limit
from graphprep.model.options.convert import ConvertOptions
from graphprep.model.protocols import Reporter, Sources
from graphprep.storage.private import TMP_DIR_OPTION
from graphprep.storage.write.places import find_folders, free_bytes

_MOST_INT32 = 2**31
_ROW_BYTES = 8  # of indptr, and of a raw ID that has to be stored
_BLOCK_BYTES = 4 << 10  # of a file on a disk, at least
ENTRY_BYTES = 1200  # of memory for each file of a store: its entry in the manifest, and its writer
_TASK_BYTES = 300  # of memory for each task, whether it has edges or not
_CHUNK_ROWS = 1 << 16  # of the sorted IDs of a type, as ``nodes`` has it
_CHUNK_BYTES = 500  # of memory for each chunk that lies in a spill file

Places = tuple[str | None, str | None]  # OUT (None: nothing is written) and the folder of temporary files
NOWHERE: Places = (None, None)


# ---- disks


class DiskNeed(NamedTuple):
    """Bytes that a run takes at least: of temporary files at one time, and of the store.

    ``under_limit``: with more memory it would take fewer temporary files; ``is_kept``: so it would if it need not go on.
    """

    temporary_bytes: int = 0
    output_bytes: int = 0
    under_limit: bool = True
    is_kept: bool = False


class _Place(NamedTuple):
    """A folder, what a run takes there, and what to do where it does not fit."""

    folder: str
    words: str
    fix: str
    need_bytes: int
    free_bytes: int

    @property
    def text(self) -> str:
        return f"{self.words} at least {format_size(self.need_bytes)} in {self.folder}, {format_size(self.free_bytes)} are free"


def compare_disk(out: str, tmp_dir: str | None, need: DiskNeed, reporter: Reporter) -> None:
    """Compare what a run takes at least with what is free, where its need is known.

    Nothing is said of remote places. Raises StorageError where there is too little.
    """
    folders = find_folders(out, tmp_dir)
    compare_with(folders, {folder: free_bytes(folder) for folder in folders if folder is not None}, need, reporter)


def compare_with(folders: tuple[str | None, str], free: dict[str, int | None], need: DiskNeed, reporter: Reporter) -> None:
    """Compare what a run takes in its folders with what is ``free`` there. Raises StorageError where that is too little."""
    wordy = bool(getattr(reporter, "details", False))
    for place in _places(folders, free, need):
        if wordy and place.need_bytes:
            reporter.message(f"disk: {place.text}")
        if place.need_bytes > place.free_bytes:
            raise StorageError(
                f"{place.words} at least {format_size(place.need_bytes)}, and {format_size(place.free_bytes)} are free",
                place=place.folder,
                fix=place.fix,
            )


def _places(folders: tuple[str | None, str], free: dict[str, int | None], need: DiskNeed) -> Iterator[_Place]:
    out, tmp = folders
    fix = "free some space, or choose another disk"
    if out is not None and (there := free[out]) is not None:
        yield _Place(out, "the store takes", fix, need.output_bytes, there)
    if (there := free[tmp]) is not None:
        words, fix = "temporary files take", f"{fix} with {TMP_DIR_OPTION}"
        if need.is_kept:
            words, fix = f"what --resume keeps and other {words}", f"{fix}, or drop --resume"
        elif need.under_limit:
            words, fix = f"under this memory limit {words}", f"{fix}, or raise --memory-limit"
        yield _Place(tmp, words, fix, need.temporary_bytes, there)


# ---- stated counts


@dataclass(frozen=True)
class _Stated:
    """A count, what it counts, and who states it: ``place``, which is an option where ``is_option``."""

    count: int
    what: str
    place: str
    is_option: bool

    @property
    def words(self) -> str:
        return f"{self.count} {self.what} take at least"

    def refuse(self, error: type[GraphprepError], message: str, fix: str) -> GraphprepError:
        """Return what to raise: an option that cannot be had is a wrong command line, whatever it lacks."""
        return (UsageError if self.is_option else error)(message, place=self.place, fix=fix)

    def too_much_memory(self, need: int, there: int) -> GraphprepError:
        message = f"{self.words} {format_size(need)} of memory, and the limit leaves {format_size(there)}"
        return self.refuse(MemoryLimitError, message, "correct the number, or raise --memory-limit")

    def too_much_disk(self, need: int, there: int, folder: str) -> GraphprepError:
        message = f"{self.words} {format_size(need)} in {folder}, and {format_size(there)} are free"
        return self.refuse(StorageError, message, "correct the number, or choose another disk")


def check_fits(sources: Sources, options: ConvertOptions) -> None:
    """Refuse counts that no ID can number: none is beyond int64, and none beyond ``--index-dtype``.

    Raises UsageError for an option, DataError for metadata.
    """
    for stated in _node_counts(sources, options).values():
        if stated.count > MOST_COUNT:
            message = f"{stated.what} are counted up to 2^63 - 1, found {stated.count}"
            raise stated.refuse(DataError, message, "correct the number")
        if options.index_dtype == "int32" and stated.count > _MOST_INT32 and sources.edge_types:
            raise UsageError(
                f"--index-dtype int32 cannot hold IDs up to {stated.count - 1}",
                place=stated.place,
                fix="use --index-dtype auto or int64",
            )


def check_room(sources: Sources, options: ConvertOptions, memory: MemoryPlan, places: Places = NOWHERE) -> None:
    """Refuse counts whose store takes more memory than the limit tasks, or more disk than is free.

    Raises UsageError for an option, else MemoryLimitError or StorageError.
    """
    stated = _node_counts(sources, options)
    is_range = options.partition_by == "range" or not stated
    for name, one in stated.items():
        need, there = _memory_of(one.count, memory, is_range=is_range)
        if sources.nodes == "ends" and options.ids != "sparse":  # a bit marks each ID that occurs; threads have their own
            need, there = max((need, there), (2 * (one.count // 8), memory.limit_bytes), key=lambda pair: pair[0] / pair[1])
        if need > there:
            raise one.too_much_memory(need, there)
        num_owned = _num_owned(sources, options, name)
        for folder, need in _disk_of(one.count, num_owned, memory.limit_bytes, places, is_range=is_range):
            free = free_bytes(folder)
            if free is not None and need > free:
                raise one.too_much_disk(need, free, folder)
    if options.partitions is not None:
        check_parts(options.partitions, "", sources, options, memory, places)


def check_parts(
    num_parts: int, place: str, sources: Sources, options: ConvertOptions, memory: MemoryPlan, places: Places
) -> None:
    """Refuse more partitions than the limit and the disk have room for: each is a folder with files of its own.

    ``place`` is the file that asks for them, empty for ``--partitions``. Raises what ``check_room`` raises.
    """
    num_files = 1 + max(1, len(sources.edge_types)) * len(options.layouts) * (3 if options.edge_ids else 2)
    refuse_parts(num_parts, place, num_files, memory.working_bytes, *places)


def num_part_files(metadata: GraphMetadata) -> int:
    """Return how many files a partition of a store has at least."""
    return 1 + 2 * len(metadata.layouts) * len(metadata.edge_types)


def refuse_parts(
    num_parts: int, place: str, num_files: int, working_bytes: int, out: str | None = None, tmp_dir: str | None = None
) -> None:
    """Refuse more partitions of ``num_files`` each than there is room for; see ``check_parts``."""
    stated = _Stated(num_parts, "partitions", place or "--partitions", is_option=not place)
    need = num_parts * num_files * ENTRY_BYTES
    if need > working_bytes:
        raise stated.too_much_memory(need, working_bytes)
    folder = None if out is None else find_folders(out, tmp_dir)[0]
    free = None if folder is None else free_bytes(folder)
    if folder is not None and free is not None and num_parts * num_files * _BLOCK_BYTES > free:
        raise stated.too_much_disk(num_parts * num_files * _BLOCK_BYTES, free, folder)


def _node_counts(sources: Sources, options: ConvertOptions) -> dict[str, _Stated]:
    """Return the numbers of nodes that are stated, by type."""
    found = {}
    for node in sources.node_types:
        what = f"nodes of type {node.name!r}"
        given = None if node.has_records else options.num_nodes.get(node.name, options.num_nodes.get(""))
        if given is not None:
            found[node.name] = _Stated(given, what, "--num-nodes", is_option=True)
        elif node.num_nodes is not None:
            found[node.name] = _Stated(node.num_nodes, what, node.stated_by, is_option=False)
    return found


def _memory_of(num_nodes: int, memory: MemoryPlan, *, is_range: bool) -> tuple[int, int]:
    """Return the memory that rows take whether they have edges or not, and what there is for it."""
    task_rows = 2 * max(1, memory.task_bytes // EDGE_BYTES)  # a task has up to two for each of its edges
    need = num_nodes // task_rows * _TASK_BYTES
    return need if is_range else need + num_nodes // _CHUNK_ROWS * _CHUNK_BYTES, memory.working_bytes


def _num_owned(sources: Sources, options: ConvertOptions, name: str) -> int:
    """Return how many layouts of edge types have a row for each node of a type."""
    owners = [one.dst_type if layout == "csc" else one.src_type for one in sources.edge_types for layout in options.layouts]
    return owners.count(name)


def _disk_of(num_nodes: int, num_owned: int, limit_bytes: int, places: Places, *, is_range: bool) -> Iterator[tuple[str, int]]:
    """Yield what ``indptr``, and raw IDs where they are not 0..n-1 in order, take of the disks."""
    if places[0] is None:
        return
    out, tmp = find_folders(places[0], places[1])
    if out is not None:
        yield out, num_nodes * _ROW_BYTES * (num_owned + (not is_range))
    if not is_range:
        yield tmp, num_nodes * _ROW_BYTES - limit_bytes


def refuse_edges(what: str, num_edges: int, item_bytes: int, places: tuple[str, str | None], held_bytes: int) -> None:
    """Refuse edges that an operation would make of few: their ends, and the store of them, have room on the disks, or not.

    ``places`` are OUT and the folder of temporary files; memory takes ``held_bytes`` of the ends. Raises StorageError.
    """
    array, (folder, tmp) = num_edges * item_bytes, find_folders(*places)
    needs = [(tmp, 2 * array - held_bytes)] if 2 * array > held_bytes else []
    needs += [] if folder is None else [(folder, 2 * array)]
    for where, need in needs:
        free = free_bytes(where)
        if free is not None and need > free:
            raise StorageError(
                f"{what} {num_edges:,} edges, which take at least {format_size(need)}, and {format_size(free)} are free",
                place=where,
                fix="choose fewer edges first, with filter-degree or another operation, or choose another disk",
            )
    if num_edges and array > (most := _most_file_bytes()):
        raise StorageError(
            f"{what} {num_edges:,} edges, whose files are larger than the system allows: {format_size(most)}",
            fix="choose fewer edges first, with filter-degree or another operation, or raise ulimit -f",
        )


def _most_file_bytes() -> float:
    """Return how large a file may be, infinity where nothing bounds it."""
    try:
        import resource

        most = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    except ImportError:  # no POSIX
        return float("inf")
    return float("inf") if most == resource.RLIM_INFINITY else most


# ---- what was found


class Outcome(NamedTuple):
    """What an input held: nodes and edges of all types, records, and what of them was skipped or dropped."""

    place: str
    num_nodes: int
    num_edges: int
    num_records: int
    num_skipped: int
    num_dropped_edges: int = 0


def check_outcome(found: Outcome, options: ConvertOptions, replaced: Mapping[str, Any] | None = None) -> None:
    """Refuse a result that is smaller, or has more faults, than the options allow.

    ``replaced`` is the metadata.json of a store that would be replaced. Raises DataError.
    """
    _, share = parse_error_limit(options.max_errors)
    total = found.num_records + found.num_skipped
    if share is not None and found.num_skipped * 100 > share * total:
        raise DataError(
            f"{found.num_skipped:,} of {total:,} records are bad ({100 * found.num_skipped / total:.3g}%), more than "
            f"--max-errors {options.max_errors}",
            place=found.place,
            fix="repair the input, or raise --max-errors",
        )
    for flag, least, number, noun in (
        ("--min-nodes", options.min_nodes, found.num_nodes, "nodes"),
        ("--min-edges", options.min_edges, found.num_edges, "edges"),
    ):
        if number < least:
            raise DataError(
                f"the graph has {number:,} {noun}, fewer than {flag} {least}",
                place=found.place,
                fix=f"see whether the input is whole, or lower {flag}",
            )
    if replaced is not None and not options.allow_empty and not (found.num_nodes and found.num_edges):
        _refuse_to_empty(found, _count(replaced, "num_nodes"), _count(replaced, "num_edges"))


def _refuse_to_empty(found: Outcome, num_nodes: int, num_edges: int) -> None:
    """Refuse to put nothing, or nodes without edges, in the place of a store that has some."""
    # Nodes there may be by --num-nodes alone; not every format counts records.
    is_empty = not found.num_nodes or not (found.num_edges or found.num_records)
    if is_empty or num_edges > 0:
        fix = "see whether what makes the input works, or give --allow-empty"
        what = "has no edges" if not is_empty else "has no good record" if found.num_skipped else "is empty"
        if found.num_dropped_edges and not found.num_edges:
            what = f"has no edges but {found.num_dropped_edges:,} that are dropped, for want of a node"
            fix = "see whether its ends are IDs of the nodes, or give --allow-empty"
        raise DataError(
            f"the input {what}, and would replace a store of {num_nodes:,} nodes and {num_edges:,} edges",
            place=found.place,
            fix=fix,
        )


def _count(metadata: Mapping[str, Any], name: str) -> int:
    """Return how many nodes or edges a metadata.json states; 0 where it does not say it in our words."""
    counts = metadata.get(f"{name}_per_type")
    return sum(one for one in counts if isinstance(one, int)) if isinstance(counts, list) else 0
