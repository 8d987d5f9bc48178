"""What ``validate --against`` found."""

from __future__ import annotations

from dataclasses import dataclass

from graphprep.model.shown.results import Card, Showable, type_rows
from graphprep.model.shown.texts import count, display_url, duration
from graphprep.validate.check import StoreReport
from graphprep.validate.faults import Fault


@dataclass(frozen=True, repr=False)
class AgainstReport(Showable):
    """In what a store differs from its input: ``num_differences`` in all, the first of them in ``differences``.

    ``store`` says whether it is sound by itself. Places are those in the store, else in the input. Times in seconds.
    """

    store: StoreReport
    inputs: tuple[str, ...]
    num_differences: int
    differences: tuple[Fault, ...]
    elapsed_s: float
    peak_memory_bytes: int

    @property
    def equal(self) -> bool:
        """Return whether the store is sound and holds what the input says."""
        return self.store.sound and not self.num_differences

    def card(self) -> Card:
        """See ``Showable``."""
        title = f"{self.store.store}: {self.words()}"
        faults = [*map(str, self.store.faults), *map(str, self.differences)]
        return Card(title, type_rows(self.store.num_nodes, self.store.num_edges), (f"in {duration(self.elapsed_s)}", *faults))

    def words(self) -> str:
        """Say what came of it."""
        names = ", ".join(map(display_url, self.inputs))
        if self.num_differences:
            return f"{count(self.num_differences, 'difference')} from {names}"
        return f"holds what {names} says"
