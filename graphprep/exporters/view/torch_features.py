"""The features of a type as one matrix of its dense columns, and what is asked of types before they are written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from graphprep.exporters.formats.torch_pickle import BFLOAT16, TensorPieces
from graphprep.exporters.unsupported import count_types
from graphprep.exporters.view.column_rows import Rows
from graphprep.model.errors import UsageError
from graphprep.model.metadata import GraphMetadata
from graphprep.store.columns.torch_rows import Matrix
from graphprep.store.columns.trainers import is_homo

GraphClass = Annotated[
    Literal["auto", "homo", "hetero"], "homo for one node type and one edge type, hetero for any; auto: homo where it can be"
]


@dataclass(frozen=True)
class FeatureMatrix(Matrix):
    """The columns that make a type's features, as a tensor in files; ``bfloat16``: floats are rounded to that."""

    bfloat16: bool = False

    @property
    def dtype(self) -> str:
        """Return the dtype in files: bfloat16 where floats are to be that."""
        found = self.array_dtype
        return BFLOAT16 if self.bfloat16 and found.kind == "f" else found.name

    @property
    def row_bytes(self) -> int:
        """Return the size of a row in bytes."""
        return TensorPieces(self.dtype, self.item_shape, tuple).num_bytes

    def tensor(self, rows: Rows, low: int = 0, high: int | None = None) -> TensorPieces:
        """Return rows [low, high) as a tensor."""
        return rows.tensor(self.dtype, self.item_shape, self.read, low, high)


def check_homo(metadata: GraphMetadata, graph_class: str) -> None:
    """Raise UsageError where a graph of several types is to be one without."""
    if graph_class == "homo" and not is_homo(metadata, graph_class):
        raise UsageError(f"option graph_class=homo: the graph has {count_types(metadata)}", fix="leave it out")


def check_file_names(metadata: GraphMetadata, system: str) -> None:
    """Raise UsageError for names of types that cannot be file names as the system writes them: edge types joined by ``__``."""
    for name in (*metadata.node_types, *(part for edge_type in metadata.edge_types for part in edge_type)):
        if "/" in name or name.startswith(".") or "\0" in name:
            raise UsageError(
                f"the type name {name!r} cannot be part of {system}'s file names: '/' and a leading '.' are not possible",
                fix="rename the type in the input",
            )
    joined = ["__".join(edge_type) for edge_type in metadata.edge_types]
    if twice := next((name for name in joined if joined.count(name) > 1), None):
        raise UsageError(f"two edge types have one file name in {system}: {twice!r}", fix="rename one of them in the input")
