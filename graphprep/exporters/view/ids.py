"""The IDs by which a trainer knows nodes: raw ones where these can be array positions, else typed ones and a map beside."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from graphprep.exporters.formats.arrow_files import ArrowSink
from graphprep.model.errors import DataError, UsageError
from graphprep.model.rows import RawTexts
from graphprep.model.schema import path_name
from graphprep.storage.read.arrow_arrays import arrow_array
from graphprep.storage.spill.scratch import Scratch
from graphprep.storage.write.outputs import FolderOutput
from graphprep.store.items import FIX, StoredArrays, part_borders
from graphprep.store.paths import NodePaths, node_folder
from graphprep.store.raw_ids import raw_numbers, raw_pieces

Ints = NDArray[np.int64]
IdSpace = Literal["raw", "typed"]
_STEP = 1 << 18


class TrainerIds:
    """Translates typed IDs of nodes into those that a trainer sees, type by type.

    ``wanted`` is raw, typed or auto: raw where a type's raw IDs are 0..n-1 in any order, else typed. With ``any_raw`` other
    integers may be raw as well. Raises UsageError where raw IDs are asked for and cannot be had.
    """

    def __init__(self, store: StoredArrays, wanted: str, scratch: Scratch, *, any_raw: bool = False) -> None:
        self._store = store
        self._metadata = store.metadata
        self._scratch = scratch
        self._maps: dict[int, NDArray[np.int32] | Ints] = {}
        self._offsets = [part_borders(store.metadata, number) for number in range(len(store.metadata.node_types))]
        self.spaces: tuple[IdSpace, ...] = tuple(
            self._settle(number, wanted, any_raw) for number in range(len(store.metadata.node_types))
        )

    def is_typed(self, number: int) -> bool:
        """Return whether a type's nodes go by their typed IDs; also where these are the raw ones."""
        return self.spaces[number] == "typed" or self._metadata.node_schemas[number].raw_ids == "identity"

    def of(self, number: int, typed: NDArray[np.int32] | Ints) -> Ints:
        """Return the IDs (int64[k]) of typed ones (int32 or int64 [k]).

        Raises DataError where there is no such node, and the IDs are not just the typed ones.
        """
        if self.is_typed(number):
            return typed.astype(np.int64, copy=False)
        try:
            return self._map(number)[typed].astype(np.int64, copy=False)
        except IndexError:
            size, name = int(self._offsets[number][-1]), self._metadata.node_types[number]
            message = f"expected typed IDs of the {size} nodes of type {name!r}, found {typed.max()}"
            raise DataError(message, place="indices.npy", fix=FIX) from None

    def in_part(self, number: int, part: int) -> Iterator[Ints]:
        """Yield the IDs of a partition's nodes in typed order, piece by piece."""
        low, high = self._offsets[number][part : part + 2].tolist()
        for start in range(low, high, _STEP):
            yield self.of(number, np.arange(start, min(start + _STEP, high)))

    def write_maps(self, out: FolderOutput) -> list[str]:
        """Write ``id_map/<type>``, the raw ID of every typed one, for the types that go by typed IDs. Return the paths."""
        paths = []
        for number in range(len(self._metadata.node_types)):
            kind = self._metadata.node_schemas[number].raw_ids
            if kind == "identity" or self.spaces[number] == "raw":
                continue
            stem = f"id_map/{path_name(self._metadata.node_types[number])}"
            if kind == "string":
                paths.append(f"{stem}.parquet")
                self._write_texts(number, paths[-1], out)
            else:
                paths.append(f"{stem}.npy")
                shape = (int(self._offsets[number][-1]),)
                out.write_npy(paths[-1], kind, shape, raw_numbers(self._store, number))
        return paths

    def _settle(self, number: int, wanted: str, any_raw: bool) -> IdSpace:
        kind = self._metadata.node_schemas[number].raw_ids
        if wanted == "typed":
            return "typed"
        if kind == "identity" or (kind != "string" and (any_raw or self._is_dense(number))):
            return "raw"
        if wanted == "raw":
            name = self._metadata.node_types[number]
            found = "texts" if kind == "string" else "integers other than 0..n-1"
            raise UsageError(
                f"--ids raw: the raw IDs of node type {name!r} are {found}, and this target counts nodes from 0",
                fix="leave it out: nodes are numbered then, and a map to raw IDs is written beside",
            )
        return "typed"

    def _is_dense(self, number: int) -> bool:
        """Return whether the raw IDs are 0..n-1. Raises DataError where their sum says that some occur twice."""
        size, total = int(self._offsets[number][-1]), 0
        for some in raw_numbers(self._store, number):
            if some.size and not 0 <= int(some.min()) <= int(some.max()) < size:
                return False
            total += int(some.sum())
        if total != size * (size - 1) // 2:
            name = self._metadata.node_types[number]
            raise DataError(f"raw IDs of node type {name!r} occur twice", place=NodePaths(node_folder(name)).raw_ids, fix=FIX)
        return True

    def _map(self, number: int) -> NDArray[np.int32] | Ints:
        if number not in self._maps:
            size = int(self._offsets[number][-1])
            top = max((int(some.max()) for some in raw_numbers(self._store, number) if some.size), default=0)
            found = self._scratch.zeros(size, np.int32 if top < 2**31 else np.int64)
            start = 0
            for some in raw_numbers(self._store, number):
                found[start : start + some.size] = some
                start += some.size
            self._maps[number] = found
        return self._maps[number]

    def _write_texts(self, number: int, path: str, out: FolderOutput) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("raw", pa.string(), nullable=False)])
        with out.open(path) as file, pq.ParquetWriter(ArrowSink(file), schema) as writer:
            first = 0
            for texts in raw_pieces(self._store, number):
                if isinstance(texts, RawTexts):
                    buffers = pa.py_buffer(texts.offsets), pa.py_buffer(texts.values)
                    raw = pa.LargeStringArray.from_buffers(texts.size, *buffers).cast(pa.string())
                    ids = arrow_array(np.arange(first, first + texts.size))
                    writer.write_table(pa.Table.from_arrays([ids, raw], schema=schema))
                    first += texts.size
