"""Flows of a loaded store, without files: what the command of the same options would write, drawn when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from graphprep.graph.graph import Graph
from graphprep.model.errors import InvalidIdError, UsageError, one_of
from graphprep.model.ids import IdLike, as_ids
from graphprep.model.options.checks import make_options
from graphprep.model.options.sample import SampleOptions
from graphprep.model.options.words import in_words, python_words
from graphprep.model.shown.results import Card, Showable
from graphprep.model.shown.texts import count
from graphprep.sample.arrays import FlowArrays, join_blocks
from graphprep.sample.command import draw_notes, grow_all, open_blocks, too_large
from graphprep.sample.flow.node_flow import NodeFlow
from graphprep.sample.flow.parent import ready_store
from graphprep.sample.flow.sequence import FlowRange, FlowSequence
from graphprep.sample.flows import TooLargeError, grow_flows
from graphprep.sample.plan import SampleAsked, check_walkers, plan_sample
from graphprep.sample.rows import HeldRows
from graphprep.sample.seeds import Seeds

Ints = NDArray[np.int64]
SeedIds = IdLike | Mapping[str, IdLike]
_OF_FILES = ("seeds", "seed_times", "typed_ids", "copy_columns", "format", "overwrite")


class DrawnFlows(FlowSequence, Showable):
    """The flows of a loaded store, mini-batch after mini-batch, epoch after epoch: each is drawn when it is asked for.

    Asked again, it is the same. ``flows[i]`` is a flow, ``flows[i:j]`` a tuple of some; going through all of them uses threads.
    ``notes`` are those of ``sample``: which edges are drawn otherwise than by weight or time.
    """

    def __init__(self, graph: Graph, asked: SampleAsked, seeds: Seeds, options: SampleOptions) -> None:
        self._graph, self._asked, self._seeds, self._options = graph, asked, seeds, options
        self._rows, self._most_bytes, self._threads = _hold(graph, asked, options)
        self.notes = in_words(draw_notes(asked, options, [rows.arrays for rows in self._rows]))

    def __len__(self) -> int:
        return self._options.epochs * self._seeds.num_batches(self._options.batch_size)

    @property
    def num_epochs(self) -> int:
        """Return how often the seeds are gone through."""
        return self._options.epochs

    def epoch(self, epoch: int) -> FlowRange:
        """Return the flows of an epoch, from 0 on, which are drawn as they are asked for."""
        if not 0 <= epoch < self.num_epochs:
            raise UsageError(f"there is no epoch {epoch}: there are {self.num_epochs}", fix="count from 0")
        size = len(self) // self.num_epochs
        return FlowRange(self, range(epoch * size, (epoch + 1) * size))

    @overload
    def __getitem__(self, key: int) -> NodeFlow: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[NodeFlow, ...]: ...
    def __getitem__(self, key: int | slice) -> NodeFlow | tuple[NodeFlow, ...]:
        if isinstance(key, slice):
            return tuple(self[number] for number in range(*key.indices(len(self))))
        if not -len(self) <= key < len(self):
            raise IndexError(f"flow {key} of {len(self)}")
        seeds = next(self._seeds.flows(self._options, key % len(self)))
        try:
            grown = grow_flows(self._asked.flows, self._rows, [seeds], self._most_bytes)[0]
        except TooLargeError as error:
            raise too_large(error, self._most_bytes) from None
        return NodeFlow(grown.arrays, self._graph)

    def __iter__(self) -> Iterator[NodeFlow]:
        for grown in grow_all(self._asked, self._rows, self._seeds, self._options, self._most_bytes, self._threads):
            yield NodeFlow(grown.arrays, self._graph)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as what opens the store again."""
        return (DrawnFlows, (self._graph, self._asked, self._seeds, self._options))

    def card(self) -> Card:
        """See ``Showable``."""
        head = f"DrawnFlows: {count(len(self), 'flow')} of {count(self._asked.flows.num_hops + 1, 'layer')}"
        return Card(head, (), tuple(f"note: {one}" for one in self.notes))


@python_words()
def neighbor_sampling(
    graph: Graph,
    seeds: SeedIds | None = None,
    *,
    seed_times: SeedIds | None = None,
    options: SampleOptions | None = None,
    **given: Any,
) -> DrawnFlows:
    """Draw flows around seeds of a loaded store: ``neighbor_sampling(graph, [0, 5], fanouts=[15, 10], batch_size=1)``.

    ``seeds`` are typed IDs, or typed IDs by node type; None: all nodes. ``seed_times`` are like them. ``given`` are fields of
    ``SampleOptions``, but for those of files; the flows are those that ``graphprep.sample`` writes with the same ones. Arrays
    of the store are mapped, or held in memory. Raises GraphprepError.
    """
    for name in _OF_FILES:
        if name in given:
            raise UsageError(f"{name} is an option of files", fix=f"leave out {name}; seeds are the second argument")
    if not isinstance(graph, Graph):
        raise UsageError(f"graph must be a loaded store, found {graph!r}", fix="pass graphprep.load(STORE)")
    wanted = _read_seeds(graph, seeds, seed_times)
    of_seeds = ("memory",)  # the names of no files
    made = make_options(SampleOptions, options, given, _OF_FILES)
    made = replace(made, seeds=of_seeds, seed_times=() if seed_times is None else of_seeds)
    asked = plan_sample(graph.metadata, made)
    check_walkers(asked.flows, wanted.types)
    return DrawnFlows(graph, asked, wanted, made)


def create_full_node_flow(
    graph: Graph, num_layers: int, seeds: SeedIds | None = None, *, all_layers: bool = False, **given: Any
) -> NodeFlow:
    """Return the complete flow of a model of ``num_layers`` layers: all edges that enter the seeds, and so on.

    It has ``num_layers`` blocks, and one layer of nodes more. ``seeds`` and ``given`` are those of ``neighbor_sampling``.
    Source of name and meaning: DGL's ``create_full_nodeflow``. As there, layers but the last one have only the sources of
    edges: without seeds, nodes from which no edge leads are in the last one alone. With ``all_layers`` every layer has all
    nodes of the graph, in the order of their typed IDs, and every block all edges.
    """
    if num_layers < 1:
        raise UsageError(f"num_layers must be at least 1, found {num_layers}", fix="count the layers of the model")
    if all_layers and seeds is not None:
        raise UsageError("all_layers and seeds contradict each other", fix="leave one out")
    hops = 1 if all_layers else num_layers
    flow = neighbor_sampling(graph, seeds, **given, full=hops, batch_size=2**62, shuffle=False)[0]
    return NodeFlow(_repeat(flow, num_layers), graph) if all_layers else flow


def _repeat(hop: NodeFlow, num_layers: int) -> FlowArrays:
    """Return the layers and blocks of a whole graph, each as often as asked; ``hop`` has its edges."""
    nodes = [hop.layer_parent_nid(-1, number) for number in range(len(hop.node_types))]
    block = []
    for number in range(len(hop.edge_types)):
        src, dst, eid = hop.block_edges(0, edge_type=number)
        src, dst = hop.node_mapping[src], hop.node_mapping[dst]
        block.append((src, dst, hop.edge_mapping[eid]))
    arrays = hop.arrays
    return join_blocks(
        arrays.node_types, arrays.block_types, arrays.direction, [nodes] * (num_layers + 1), [block] * num_layers
    )


def _read_seeds(graph: Graph, seeds: SeedIds | None, times: SeedIds | None) -> Seeds:
    """Check seeds. Raises UsageError for what is no node, where there is none, and for times that are not as many."""
    every = {name: np.arange(graph.num_nodes(name)) for name in graph.node_types}
    wanted = every if seeds is None else _by_type(graph, seeds, "ids")
    stamps = None if times is None else _by_type(graph, times, "seed_times")
    for name, ids in wanted.items():
        known = np.asarray(graph.has_nodes(ids, name)) if ids.size else np.ones(0, np.bool_)
        if not known.all():
            raise UsageError(f"there is no node {ids[~known][0]} of type {name!r}", fix="pass typed IDs")
        if stamps is not None and stamps.get(name, ids[:0]).size != ids.size:
            raise UsageError(f"{ids.size} seeds of type {name!r} need as many times", fix="pass a time for each seed")
    if not any(ids.size for ids in wanted.values()):
        raise UsageError("there are no seeds", fix="pass IDs of nodes")
    types = [np.full(ids.size, graph.node_types.index(name), np.int32) for name, ids in wanted.items()]
    joined = None if stamps is None else np.concatenate([stamps[name] for name in wanted if wanted[name].size])
    return Seeds(np.concatenate(types), np.concatenate(list(wanted.values())), joined)


def _by_type(graph: Graph, ids: SeedIds, what: str) -> dict[str, Ints]:
    """Return integers by node type: int64[k] each. Raises UsageError for other types, and for what is no list of integers."""
    if not isinstance(ids, Mapping):
        if len(graph.node_types) > 1:
            raise UsageError("there are several node types", fix="pass a dict by node type")
        ids = {graph.node_types[0]: ids}
    for name in ids:
        if name not in graph.node_types:
            raise UsageError(f"there is no node type {name!r}", fix=one_of(graph.node_types, "use some of", found=name))
    return {name: _integers(some, what) for name, some in ids.items()}


def _integers(given: IdLike, what: str) -> Ints:
    """Return one integer or several: int64[k]. Raises InvalidIdError for others, and those that int64 does not hold."""
    found = np.atleast_1d(as_ids(given, what))
    if found.ndim > 1:
        raise InvalidIdError(f"{what} must be in one dimension, found shape {found.shape}", fix="pass a flat list")
    if found.size and (other := np.atleast_1d(np.asarray(given)) != found).any():
        words = f"{what} must fit int64, found {np.atleast_1d(np.asarray(given))[other][0]}"
        raise InvalidIdError(words, fix="pass smaller ones")
    return found


def _hold(graph: Graph, asked: SampleAsked, options: SampleOptions) -> tuple[list[HeldRows], int, int]:
    """Return the rows of all block types, mapped or in memory, how many bytes flows may take, and the number of threads."""
    with ready_store(graph, asked, options.run) as (ready, memory):
        return [HeldRows(one) for one in open_blocks(asked, ready)], memory.working_bytes, memory.threads
