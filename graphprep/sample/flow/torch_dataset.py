"""Samples as a Dataset of torch. Nothing else imports torch for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch.utils.data import Dataset

from graphprep.model.errors import UsageError, one_of
from graphprep.sample.flow.node_flow import NodeFlow

_FORMS = ("flow", "dgl", "pyg")


class FlowDataset(Dataset):  # type: ignore[misc]
    """Flows by number, each read and put in its form where it is asked for: in a worker of a ``DataLoader``, there."""

    def __init__(self, samples: Sequence[NodeFlow], form: str, options: Mapping[str, Any]) -> None:
        if form not in _FORMS:
            raise UsageError(f"there is no form {form!r}", fix=one_of(_FORMS, found=form))
        self._samples, self._form, self._options = samples, form, dict(options)

    def __len__(self) -> int:
        return len(self._samples)

    def __getitem__(self, number: int) -> Any:
        flow = self._samples[number]
        if self._form == "dgl":
            return flow.to_dgl_blocks(**self._options)
        return flow.to_pyg(**self._options) if self._form == "pyg" else flow
