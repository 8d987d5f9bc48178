"""The seeds of a run, cut into flows: shuffled anew for each epoch, by the seed alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphprep.convert.roles.seeds import find_seeds, read_ids
from graphprep.edges.moves import Workspace
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

Ints = NDArray[np.int64]
_SHUFFLE = (1 << 32) - 1  # the stream of the order of seeds
SEED_BYTES = 64  # of a seed while it is read, shuffled and cut into flows


@dataclass(frozen=True)
class Seeds:
    """All seeds: types int32[n], typed IDs int64[n], as given, and times int64[n] or None."""

    types: NDArray[np.int32]
    nodes: Ints
    times: Ints | None

    def num_batches(self, batch_size: int) -> int:
        """Return how many batches an epoch has."""
        return -(-self.nodes.size // batch_size)

    def flows(self, options: SampleOptions, first: int = 0) -> Iterator[FlowSeeds]:
        """Yield the seeds of every flow from the one numbered ``first`` on, epoch after epoch."""
        num_batches = self.num_batches(options.batch_size)
        for epoch in range(options.epochs):
            if first >= (epoch + 1) * num_batches:
                continue
            order = np.arange(self.nodes.size)
            if options.shuffle:
                key = int(stream_keys(options.seed % 2**64, [epoch], [0], 0, _SHUFFLE)[0])
                order = np.argsort(random_words(key, order.view(np.uint64), 0), kind="stable")
            for batch in range(max(0, first - epoch * num_batches), num_batches):
                mine = order[batch * options.batch_size : (batch + 1) * options.batch_size]
                times = None if self.times is None else self.times[mine]
                yield FlowSeeds(epoch, batch, self.types[mine], self.nodes[mine], times)


class _TypedIds(StoreIndex):
    """Takes the IDs in files as typed ones."""

    @property
    def raw_kinds(self) -> Sequence[RawIdKind]:
        return ["identity"] * len(self.store.metadata.node_types)


def read_seeds(storage: Storage, store: StoreReader, options: SampleOptions, room: Workspace) -> Seeds:
    """Read the files of seeds, and of their times.

    Raises UsageError for an unknown type, DataError ``file:line`` for an ID that is no node.
    """
    types, nodes, times = [], [], []
    index = (_TypedIds if options.typed_ids else StoreIndex)(store, room.piece_bytes)
    for number, word in enumerate(options.seeds):
        name, url = _split(word, store.metadata)
        owner = node_owner(store.metadata, name)
        if url.startswith("split:"):
            found = [_of_split(store, name, url.removeprefix("split:"), room)]
        else:
            found = _of_files(storage, url, index, owner, room)
        nodes.append(np.concatenate([np.zeros(0, np.int64), *found]))
        types.append(np.full(nodes[-1].size, owner.number, np.int32))
        if options.seed_times:
            times.append(_read_times(storage, options.seed_times[number], nodes[-1].size, word))
    if not sum(one.size for one in nodes):
        raise DataError("there are no seeds", place=display_url(options.seeds[0]), fix="name a file of node IDs")
    return Seeds(np.concatenate(types), np.concatenate(nodes), np.concatenate(times) if times else None)


def _of_files(storage: Storage, url: str, index: StoreIndex, owner: Owner, room: Workspace) -> list[Ints]:
    """Return the nodes of files. Raises StorageError where there is none; ``X=FILE`` may have meant a type."""
    try:
        return list(find_seeds(storage, url, index, owner.number, room.held_bytes))
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
        raise UsageError(words, fix=one_of(metadata.node_types, "write --seeds TYPE=FILE, where TYPE is one of"))
    return found


def _of_split(store: StoreReader, name: str | None, part: str, room: Workspace) -> Ints:
    """Return the nodes of a part of the split: int64[k], ascending."""
    owner = node_owner(store.metadata, name)
    columns = [one for one in owner.columns if one.role == "split"]
    if part not in SPLITS or not columns:
        words = f"{owner.name!r} has no split" if not columns else f"there is no part {part!r}"
        raise UsageError(f"--seeds split:{part}: {words}", fix="name train, valid or test of a type with a split, or a file")
    with room.scratch.inner() as scratch:
        return np.flatnonzero(column_mask(store, owner, columns[0].name, part, scratch))


def _read_times(storage: Storage, url: str, size: int, seeds: str) -> Ints:
    """Read integers, one for each seed, in their order. Raises DataError."""
    found = [some.ids.numbers.view(np.int64) for file in storage.expand([url]).files for some in read_ids(storage, file, "int")]
    times = np.concatenate([np.zeros(0, np.int64), *found])
    if times.size != size:
        raise DataError(
            f"expected {size} times, one for each of {display_url(seeds)}, found {times.size}",
            place=display_url(url),
            fix="write one time a seed",
        )
    return times
