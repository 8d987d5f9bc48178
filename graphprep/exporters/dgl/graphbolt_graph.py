"""GraphBolt's graph as a torch file: ``FusedCSCSamplingGraph``, written without DGL and torch.

Source: DGL 2.1, ``FusedCSCSamplingGraph::GetState``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graphprep.exporters.formats.torch_pickle import Global, Instance, TensorPieces, script_object, tensor

FUSED_NAME = "fused_csc_sampling_graph.pt"
NODE_ID = EDGE_ID = "_ID"
ORIGINAL_EDGE_ID = "_ORIGINAL_EDGE_ID"
_VERSION = 6199  # of its own state, in DGL 2.1 and after
_CLASS = Global("dgl.graphbolt.impl.fused_csc_sampling_graph", "FusedCSCSamplingGraph")
_SCRIPT_CLASS = "__torch__.torch.classes.graphbolt.FusedCSCSamplingGraph"
_MOST_32 = 2**31 - 1


@dataclass(frozen=True)
class FusedGraph:
    """In-edges of nodes: those of row i stand at ``indptr[i]:indptr[i + 1]``, by type.

    All tensors of edges are in that order. ``node_type_offset`` (one more than types), ``type_per_edge`` and the two maps from
    a type's name to its number are those of heterogeneous graphs.
    """

    indptr: TensorPieces
    indices: TensorPieces
    node_type_offset: TensorPieces | None = None
    type_per_edge: TensorPieces | None = None
    node_type_to_id: Mapping[str, int] | None = None
    edge_type_to_id: Mapping[str, int] | None = None
    node_attributes: Mapping[str, TensorPieces] = field(default_factory=dict)
    edge_attributes: Mapping[str, TensorPieces] = field(default_factory=dict)

    def value(self) -> Instance:
        """Return it as what ``write_pt`` takes."""
        tensors = {
            "version_number": tensor([_VERSION], np.int64),
            "indptr": self.indptr,
            "indices": self.indices,
            "node_type_offset": self.node_type_offset,
            "type_per_edge": self.type_per_edge,
        }
        state: dict[str, Any] = {
            "independent_tensors": {name: some for name, some in tensors.items() if some is not None},
            "node_type_to_id": _scalars(self.node_type_to_id),
            "edge_type_to_id": _scalars(self.edge_type_to_id),
            "node_attributes": self.node_attributes,
            "edge_attributes": self.edge_attributes,
        }
        filled = {name: some for name, some in state.items() if some}
        return Instance(_CLASS, (), {"_c_csc_graph": script_object(_SCRIPT_CLASS, filled)})


def fitting_dtype(most: int) -> str:
    """Return the narrower of int32 and int64 that holds numbers up to ``most``."""
    return "int32" if most <= _MOST_32 else "int64"


def type_dtype(num_types: int) -> str:
    """Return the narrowest dtype for the numbers of so many edge types, of those that GraphBolt chooses from."""
    choices = ((2**8, "uint8"), (2**15, "int16"), (2**31, "int32"))
    return next((name for most, name in choices if num_types <= most), "int64")


def _scalars(numbers: Mapping[str, int] | None) -> dict[str, TensorPieces]:
    return {name: tensor(number, np.int64) for name, number in (numbers or {}).items()}
