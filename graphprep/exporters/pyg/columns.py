"""The columns of a type as the files of tensors that PyTorch Geometric reads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from graphprep.exporters.formats.torch_pickle import BFLOAT16, TensorPieces
from graphprep.exporters.view.column_rows import Rows
from graphprep.exporters.view.graph import StoredGraph
from graphprep.exporters.view.torch_graph import by_id
from graphprep.store.columns.trainers import Attribute


def to_bfloat16(attribute: Attribute) -> Attribute:
    """Return a feature matrix of floats as one that is rounded when it is written, anything else as it is."""
    is_rounded = attribute.is_matrix and np.dtype(attribute.dtype).kind == "f"
    return replace(attribute, dtype=BFLOAT16) if is_rounded else attribute


def tensor_by_id(attribute: Attribute, graph: StoredGraph, number: int) -> TensorPieces:
    """Return an attribute of all nodes of a type, by the IDs that trainers see."""
    parts = [Rows.of_nodes(graph, number, part) for part in range(graph.metadata.num_parts)]
    held = "float32" if attribute.dtype == BFLOAT16 else attribute.dtype
    found = by_id(graph, number, held, attribute.item_shape, lambda part, low, high: attribute.read(parts[part], low, high))
    return TensorPieces(attribute.dtype, found.shape, found.pieces)
