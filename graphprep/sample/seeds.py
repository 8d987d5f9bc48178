"""The seeds of a run, cut into flows: shuffled anew for each epoch, by the seed alone."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphprep.convert.roles.seeds import find_seeds, read_ids
from graphprep.edges.moves import Workspace
from graphprep.kernels.cpu.ids.sort import order_by_key
from graphprep.kernels.cpu.sample.draw import stream_keys
from graphprep.kernels.cpu.sample.philox import random_words
from graphprep.model.errors import DataError, StorageError, UsageError, one_of
from graphprep.model.metadata import GraphMetadata
from graphprep.model.options.sample import SampleOptions
from graphprep.model.schema import RawIdKind
from graphprep.rewrite.transform.node_ops import StoreIndex
from graphprep.rewrite.transform.select import SPLITS, Owner, column_mask, node_owner
from graphprep.sample.drawn import FlowSeeds
from graphprep.storage.faults import display_url
from graphprep.storage.read.arrays import StoreReader
from graphprep.storage.read.urls import Storage
from graphprep.storage.spill.runs import Runs
from graphprep.storage.spill.scratch import Scratch

Ints = NDArray[np.int64]
_SHUFFLE = (1 << 32) - 1  # the stream of the order of seeds
_STEP = 1 << 18  # seeds that are looked at at once


@dataclass(frozen=True)
class Seeds:
    """All seeds: types int32[n], typed IDs int64[n], as given, and times int64[n] or None.

    ``scratch`` is where their orders lie, too, where memory may not hold them; else the last one is kept in ``held``.
    """

    types: NDArray[np.int32]
    nodes: Ints
    times: Ints | None
    scratch: Scratch | None = None
    held: dict[int, Ints] = field(default_factory=dict, repr=False, compare=False)

    def num_batches(self, batch_size: int) -> int:
        """Return how many batches an epoch has."""
        return -(-self.nodes.size // batch_size)

    def flows(self, options: SampleOptions, first: int = 0) -> Iterator[FlowSeeds]:
        """Yield the seeds of every flow from the one numbered ``first`` on, epoch after epoch."""
        num_batches = self.num_batches(options.batch_size)
        for epoch in range(options.epochs):
            if first >= (epoch + 1) * num_batches:
                continue
            with contextlib.nullcontext() if self.scratch is None else self.scratch.inner() as scratch:
                order = self._order(options, epoch, scratch)
                for batch in range(max(0, first - epoch * num_batches), num_batches):
                    chosen = slice(batch * options.batch_size, (batch + 1) * options.batch_size)
                    mine: Any = chosen if order is None else order[chosen]
                    nodes, types = np.array(self.nodes[mine]), np.array(self.types[mine])
                    yield FlowSeeds(epoch, batch, types, nodes, None if self.times is None else np.array(self.times[mine]))

    def _order(self, options: SampleOptions, epoch: int, scratch: Scratch | None) -> Ints | None:
        """Return the order of an epoch's seeds; None: as given."""
        if not options.shuffle:
            return None
        key, size = int(stream_keys(options.seed % 2**64, [epoch], [0], 0, _SHUFFLE)[0]), self.nodes.size
        if scratch is None:
            order = self.held.get(key)
            if order is None:
                order = np.argsort(random_words(key, np.arange(size, dtype=np.uint64), 0), kind="stable")
                self.held.clear()
                self.held[key] = order
            return order
        words, order, more = (scratch.zeros(size, dtype) for dtype in (np.uint64, np.int64, np.int64))
        for start in range(0, size, _STEP):
            some = np.arange(start, min(start + _STEP, size))
            words[start : start + _STEP] = random_words(key, some.view(np.uint64), 0)
            order[start : start + _STEP] = some
        return np.asarray(order_by_key(words, order, more))


class _Found(NamedTuple):
    """Some of the seeds, or of their times."""

    values: Ints


class _TypedIds(StoreIndex):
    """Takes the IDs in files as typed ones."""

    @property
    def raw_kinds(self) -> Sequence[RawIdKind]:
        return ["identity"] * len(self.store.metadata.node_types)


def read_seeds(storage: Storage, store: StoreReader, options: SampleOptions, room: Workspace) -> Seeds:
    """Read the files of seeds, and of their times.

    Raises UsageError for an unknown type, DataError ``file:line`` for an ID that is no node.
    """
    nodes: Runs[_Found] = Runs(room.pool)
    times: Runs[_Found] = Runs(room.pool)
    types, counts = [], []
    index = (_TypedIds if options.typed_ids else StoreIndex)(store, room.piece_bytes)
    for number, word in enumerate(options.seeds):
        name, url = _split(word, store.metadata)
        owner = node_owner(store.metadata, name)
        if url.startswith("split:"):
            found = _of_split(store, name, url.removeprefix("split:"), room)
        else:
            found = _of_files(storage, url, index, owner, room)
        types.append(owner.number)
        counts.append(_append(nodes, found))
        if options.seed_times:
            _check_times(_append(times, _read_times(storage, options.seed_times[number])), counts[-1], number, options)
    total = sum(counts)
    if not total:
        raise DataError("there are no seeds", place=display_url(options.seeds[0]), fix="name a file of node IDs")
    kinds = room.scratch.zeros(total, np.int32)
    for number, stop, size in zip(types, accumulate(counts), counts, strict=True):
        kinds[stop - size : stop] = number
    joined = _joined(times, total, room.scratch) if options.seed_times else None
    return Seeds(kinds, _joined(nodes, total, room.scratch), joined, room.scratch)


def _append(runs: Runs[_Found], found: Iterator[Ints]) -> int:
    """Add arrays to runs; return how many values that are."""
    total = 0
    for values in found:
        runs.append(0, _Found(values))
        total += values.size
    return total


def _joined(runs: Runs[_Found], size: int, scratch: Scratch) -> Ints:
    """Move what runs hold into one array."""
    out, at = scratch.zeros(size, np.int64), 0
    for (values,) in runs.read(0, consume=True):
        out[at : at + values.size] = values
        at += values.size
    runs.close()
    return out


def _of_files(storage: Storage, url: str, index: StoreIndex, owner: Owner, room: Workspace) -> Iterator[Ints]:
    """Yield the nodes of files. Raises StorageError where there is none; ``X=FILE`` may have meant a type."""
    try:
        yield from find_seeds(storage, url, index, owner.number, room.held_bytes)
    except StorageError as error:
        if "=" in url:
            error.fix += f"; the node type of --seeds TYPE=FILE is {owner.name}"
        raise


def _split(word: str, metadata: GraphMetadata) -> tuple[str | None, str]:
    """Split ``TYPE=FILE``. Raises UsageError where there is no file, or no such type and several others."""
    head, equals, url = word.partition("=")
    found = (head, url) if equals and head in metadata.node_types else (None, word)
    if not found[1]:
        raise UsageError(f"--seeds {word!r} names no file", fix="write [TYPE=]FILE")
    if found[0] is None and len(metadata.node_types) > 1:
        is_name = equals and "/" not in head
        words = f"there is no node type {head!r}" if is_name else "there are several node types"
        raise UsageError(
            words,
            fix=one_of(metadata.node_types, "write --seeds TYPE=FILE, where TYPE is one of", found=head if is_name else ""),
        )
    return found


def _of_split(store: StoreReader, name: str | None, part: str, room: Workspace) -> Iterator[Ints]:
    """Yield the nodes of a part of the split: int64[k], ascending."""
    owner = node_owner(store.metadata, name)
    columns = [one for one in owner.columns if one.role == "split"]
    if part not in SPLITS or not columns:
        words = f"{owner.name!r} has no split" if not columns else f"there is no part {part!r}"
        raise UsageError(f"--seeds split:{part}: {words}", fix="name train, valid or test of a type with a split, or a file")
    with room.scratch.inner() as scratch:
        mask = column_mask(store, owner, columns[0].name, part, scratch)
        for start in range(0, mask.size, _STEP):
            yield np.flatnonzero(mask[start : start + _STEP]) + start


def _read_times(storage: Storage, url: str) -> Iterator[Ints]:
    """Yield integers. Raises DataError."""
    for file in storage.expand([url]).files:
        for some in read_ids(storage, file, "int"):
            yield some.ids.numbers.view(np.int64)


def _check_times(found: int, wanted: int, number: int, options: SampleOptions) -> None:
    """Raise DataError where times are not as many as their seeds."""
    if found != wanted:
        raise DataError(
            f"expected {wanted} times, one for each of {display_url(options.seeds[number])}, found {found}",
            place=display_url(options.seed_times[number]),
            fix="write one time a seed",
        )
