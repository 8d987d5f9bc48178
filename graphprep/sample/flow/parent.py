"""The graph that flows are of: whether another one has its nodes and edges in the same order."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from graphprep.derived.derive import derived_store
from graphprep.derived.store import DerivedStore
from graphprep.engine.ledger import MemoryPlan
from graphprep.graph.graph import Graph
from graphprep.model.errors import DataError
from graphprep.model.options.sample import SampleOptions
from graphprep.model.protocols import QuietReporter
from graphprep.model.run_options import RunOptions
from graphprep.rewrite.run import StoreRun
from graphprep.rewrite.stored_edges import derive_needs
from graphprep.sample.order import describe_store, find_difference
from graphprep.sample.plan import SampleAsked, plan_sample
from graphprep.storage.faults import display_url


@contextlib.contextmanager
def ready_store(graph: Graph, asked: SampleAsked, options: RunOptions) -> Iterator[tuple[DerivedStore, MemoryPlan]]:
    """Yield a loaded store with the layouts that are drawn from, and how its memory is shared out."""
    with contextlib.ExitStack() as stack:
        run = stack.enter_context(StoreRun(graph.url, None, replace(options, device="cpu"), None))
        room = run.room(graph.metadata)
        run.ledger.begin("prepare", derive_needs(room))
        narrow = copy.copy(graph.reader)
        narrow.metadata = asked.metadata(graph.metadata)
        need = asked.need(graph.metadata)
        yield stack.enter_context(derived_store(narrow, need, run.storage, room, QuietReporter(), run.tmp_dir)), run.memory
        run.finish()


def describe_graph(graph: Graph, direction: str) -> dict[str, Any]:
    """Return what the manifest of samples of a loaded store would say of it."""
    asked = plan_sample(graph.metadata, SampleOptions(seeds=("memory",), full=1, direction=direction))  # type: ignore[arg-type]
    with ready_store(graph, asked, RunOptions()) as (store, _):
        return describe_store(graph.metadata, store, direction)


def check_parent(stated: Mapping[str, Any], graph: Graph, direction: str) -> None:
    """Refuse a store whose counts, edges or order of IDs are not those that are stated."""
    words = find_difference(stated, describe_graph(graph, direction))
    if words:
        raise DataError(
            f"these are not samples of this store: {words}",
            place=display_url(graph.url),
            fix="name the store that was sampled, not one made of it or made anew, or sample this one",
        )


def check_same(one: Graph | None, other: Graph | None, direction: str) -> None:
    """Refuse two graphs that do not number their nodes and edges alike; None is like any."""
    if one is None or other is None or one is other or (one.url == other.url and one.metadata == other.metadata):
        return
    check_parent(describe_graph(one, direction), other, direction)
