"""Layers and flows by number: ``layers(i)``, ``layers[i].data``, ``flows(i, i + 1)``, ``flows[i, i + 1].data``."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphprep.model.errors import UsageError, one_of
from graphprep.model.export import Side
from graphprep.sample.flow.structure import FlowStructure

Ints = NDArray[np.int64]
_NEXT = "name a layer and the next one"


class Part(NamedTuple):
    """The nodes of a layer, or the edges of a flow. ``data``: their columns, see ``FlowData``."""

    data: FlowData


class Layers:
    """``layers(i)`` are the IDs of a layer's nodes within the flow, ``layers[i].data`` their columns; -1 is the last layer."""

    def __init__(self, flow: FlowStructure) -> None:
        self._flow = flow

    def __call__(self, layer: int) -> Ints:
        """Return ``layer_nid``."""
        return self._flow.layer_nid(layer)

    def __getitem__(self, layer: int) -> Part:
        return Part(FlowData(self._flow, "node", self._flow.layer_number(layer)))

    def __len__(self) -> int:
        return self._flow.num_layers

    def __iter__(self) -> Iterator[Part]:
        return map(self.__getitem__, range(len(self)))


class Flows:
    """``flows(i, i + 1)`` are the IDs of the edges between two layers, ``flows[i, i + 1].data`` their columns.

    Raises UsageError for layers that do not follow each other.
    """

    def __init__(self, flow: FlowStructure) -> None:
        self._flow = flow

    def __call__(self, first: int, second: int) -> Ints:
        """Return ``block_eid`` of the flow between two layers."""
        return self._flow.block_eid(self._block(first, second))

    def __getitem__(self, pair: tuple[int, int]) -> Part:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise UsageError(f"a flow is named by two layers, found {pair!r}", fix="ask for flows[i, i + 1]")
        return Part(FlowData(self._flow, "edge", self._block(*pair)))

    def __len__(self) -> int:
        return self._flow.num_blocks

    def _block(self, first: int, second: int) -> int:
        low, high = self._flow.layer_number(first), self._flow.layer_number(second)
        if high != low + 1:
            raise UsageError(
                f"there is no flow from layer {first} to layer {second}: flows are between consecutive layers",
                fix=f"name a layer and the next one: flows[{low}, {low + 1}]" if low + 1 < self._flow.num_layers else _NEXT,
            )
        return low


class FlowData(MutableMapping[str, Any]):
    """Columns of a layer's nodes or a flow's edges by name: read when asked for, and what was set here.

    A value is a column (see ``Graph.column``) with a row for each; where there are several types a dict of them by type, of
    those types that have it. Edge types are those of the flow (``NodeFlow.edge_types``).
    """

    def __init__(self, flow: FlowStructure, side: Side, position: int) -> None:
        self._flow, self._side, self._position = flow, side, position

    def __getitem__(self, name: str) -> Any:
        found = {kind: value for number, kind in self._types() if (value := self._read(number, name)) is not None}
        if not found:
            raise KeyError(name)
        return found if len(self._types()) > 1 else next(iter(found.values()))

    def __setitem__(self, name: str, value: Any) -> None:
        given = value if len(self._types()) > 1 else {self._types()[0][1]: value}
        if not isinstance(given, dict):
            raise UsageError(f"{name!r}: there are several types", fix="set a dict of values by type")
        numbers = {kind: number for number, kind in self._types()}
        for kind, some in given.items():
            if kind not in numbers:
                raise UsageError(
                    f"{name!r}: there is no type {kind!r}", fix=one_of(map(str, numbers), "use some of", found=kind)
                )
            size = self._at(numbers[kind]).size
            if len(some) != size:
                raise UsageError(f"{name!r}: {len(some)} rows for {size} {self._side}s", fix="set a row for each")
        for kind, some in given.items():
            self._flow.held[self._side, self._position, numbers[kind], name] = some

    def __delitem__(self, name: str) -> None:
        """Forget what was set; a column of the graph is there again."""
        keys = [key for key in self._flow.held if key[:2] == (self._side, self._position) and key[3] == name]
        if not keys:
            raise KeyError(name)
        for key in keys:
            del self._flow.held[key]

    def __iter__(self) -> Iterator[str]:
        names = dict.fromkeys(column.name for number, _ in self._types() for column in self._schemas(number))
        names |= dict.fromkeys(key[3] for key in self._flow.held if key[:2] == (self._side, self._position))
        return iter(names)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"FlowData({', '.join(self)})"

    def _types(self) -> list[tuple[int, Any]]:
        return list(enumerate(self._flow.node_types if self._side == "node" else self._flow.edge_types))

    def _schemas(self, number: int) -> Any:
        columns = self._flow.columns
        return () if columns is None else columns.schemas(self._side, number)

    def _read(self, number: int, name: str) -> Any:
        held = self._flow.held.get((self._side, self._position, number, name))
        if held is not None:
            return held
        for column in self._schemas(number):
            if column.name == name:
                return self._flow.columns.values(self._side, number, column, self._at(number))  # type: ignore[union-attr]
        return None

    def _at(self, number: int) -> Ints:
        if self._side == "node":
            return self._flow.layer_nid(self._position, number)
        return self._flow.block_eid(self._position, number)
