"""What an exporter is."""

from __future__ import annotations

from typing import ClassVar, Literal, Protocol

from graphprep.exporters.view.graph import StoredGraph
from graphprep.model.export import ExportPlan, MessageEdges
from graphprep.model.metadata import GraphMetadata
from graphprep.storage.write.outputs import FolderOutput


class Exporter(Protocol):
    """Writes a store as the files of one trainer: a frozen dataclass whose fields are its options, each with a default.

    ``loads_in``, ``carries`` and ``needs`` are one line each: what reads the files, what of a store they hold and what not, and
    in which order edges and nodes are read for them. ``Annotated[int, "number of files"]`` says what an option means.
    ``root_file`` is written last; that it is there says that all is. ``node_ids`` are the IDs that files name nodes by:
    ``dense`` are 0..n-1 within a type, for which raw IDs do where they are that; ``own`` leaves the choice to the exporter.
    ``message_edges`` is which edges of a split the graph has unless users ask for others; None: all, and nobody can. It is left
    to ``export`` by all that read edges in the rows of a layout. ``edge_sets`` says where the files list the edges of each part
    of a split; empty: nowhere. ``negatives`` likewise says where these have their negatives.
    One that lists hashes of its files has ``file_digest``, the hash's name, and finds them in the folder's ``digests``.
    """

    name: ClassVar[str]
    loads_in: ClassVar[str]
    carries: ClassVar[str]
    needs: ClassVar[str]
    root_file: ClassVar[str]
    node_ids: ClassVar[Literal["dense", "own"]]
    message_edges: ClassVar[MessageEdges | None] = None
    edge_sets: ClassVar[str] = ""
    negatives: ClassVar[str] = ""

    def plan(self, metadata: GraphMetadata) -> ExportPlan:
        """Say what the exporter reads of such a store, and which columns it does not support.

        Raises UsageError where the graph cannot be exported at all, or an option does not fit it.
        """

    def export(self, graph: StoredGraph, out: FolderOutput) -> None:
        """Write all files, ``root_file`` last."""
