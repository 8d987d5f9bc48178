"""What all sequences of flows have, of files and drawn: the Dataset of torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

from graphprep.graph.libraries import load_library
from graphprep.sample.flow.node_flow import NodeFlow


class FlowSequence(Sequence[NodeFlow]):
    """Flows by number."""

    def to_torch(self, form: str = "flow", **options: Any) -> Any:
        """Return a ``torch.utils.data.Dataset`` of the flows, for ``DataLoader(dataset, batch_size=None, num_workers=2)``.

        ``form`` of its items: ``flow`` (``NodeFlow``), ``dgl`` (what ``to_dgl_blocks`` returns) or ``pyg`` (``to_pyg``), with
        the ``options`` of these. Needs torch.
        """
        load_library("torch")
        from graphprep.sample.flow.torch_dataset import FlowDataset

        return FlowDataset(self, form, options)


class FlowRange(FlowSequence):
    """Some flows of a sequence, by their numbers there, each as it is asked for."""

    def __init__(self, flows: FlowSequence, numbers: range) -> None:
        self._flows, self._numbers = flows, numbers

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, key: int) -> NodeFlow: ...
    @overload
    def __getitem__(self, key: slice) -> FlowRange: ...
    def __getitem__(self, key: int | slice) -> NodeFlow | FlowRange:
        if isinstance(key, slice):
            return FlowRange(self._flows, self._numbers[key])
        if not -len(self) <= key < len(self):
            raise IndexError(f"flow {key} of {len(self)}")
        return self._flows[self._numbers[key]]
