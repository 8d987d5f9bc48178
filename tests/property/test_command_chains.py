"""Chains of all commands that write stores: each result is sound, keeps what no order and no partition changes, and leads back."""

import numpy as np
import pytest
from golden.golden_cases import load_cases
from property.chains import Drawer, write_store

import graphprep
from graphprep.model.errors import GraphprepError

GOLDEN = [case.store for case in load_cases() if (case.store / "metadata.json").exists()]
ORDERS = ("degree", "in-degree", "out-degree", "hub-sort", "hub-cluster", "dbg", "bfs", "rcm", "llp", "random", "previous")
METHODS = ("range", "hash", "random", "ldg", "fennel")


def pick(rng, values):
    return values[int(rng.integers(len(values)))]


def reorder(rng, drawer, store, out):
    by = pick(rng, ORDERS)
    hot = by != "previous" and rng.random() < 0.3
    options = {"id2index": True, "split_ratio": 0.3} if hot else {}
    graphprep.reorder(store, out, by=by, scope=pick(rng, ("partition", "graph")), seed=int(rng.integers(9)), **options)
    return f"reorder {by} {options}"


def partition(rng, drawer, store, out):
    by, num_parts = pick(rng, METHODS), int(rng.integers(1, 4))
    graphprep.partition(store, out, by=by, partitions=num_parts)
    return f"partition {by} {num_parts}"


def split(rng, drawer, store, out):
    of = pick(rng, ("nodes", "edges"))
    options = {"negatives": "1", "symmetric": bool(rng.random() < 0.3)} if of == "edges" and rng.random() < 0.5 else {}
    graphprep.split(store, out, "0.6/0.2/0.2", of=[of], overwrite_column=bool(rng.random() < 0.8), **options)
    return f"split {of} {options}"


def transform(rng, drawer, store, out):
    words = drawer.draw(store) + (drawer.draw(store) if rng.random() < 0.2 else [])
    graphprep.transform(store, out, words, ids=pick(rng, ("compact", "compact", "preserved")))
    return f"transform {words}"


COMMANDS = (reorder, reorder, partition, split, transform, transform, transform)


def rows_of(store):
    """Return the nodes and edges of a store by raw ID, with their columns but negatives, which are typed IDs."""
    graph, found = graphprep.load(str(store)), {}
    for of in (*graph.node_types, *graph.edge_types):
        table = graph.to_arrow(of) if isinstance(of, str) else graph.to_arrow(of, order="rows")
        kept = [name for name in table.column_names if not name.startswith("negative_")]
        has_ids = isinstance(of, str) or graph.metadata.edge_schemas[graph.edge_types.index(of)].edge_id_dtype is not None
        kept = kept if has_ids or "edge_id" not in kept[:3] else [name for name in kept if name != "edge_id"]
        found[of] = sorted(map(str, table.select(kept).to_pylist()))
    return found


def check_commands(seed, folder, most=5):
    """Draw a store and commands; validate after each."""
    rng = np.random.default_rng(seed)
    at = pick(rng, GOLDEN) if rng.random() < 0.4 else write_store(rng, folder)
    drawer, told = Drawer(rng, folder), []
    for number in range(int(rng.integers(2, most + 1))):
        out, command = folder / f"out-{number}", pick(rng, COMMANDS)
        try:
            told.append(command(rng, drawer, at, out))
        except GraphprepError as error:
            told.append(f"{command.__name__}: {error.message}")
            assert not out.exists()
            continue
        report = graphprep.validate(out)
        assert report.sound, (seed, told, report.faults)
        if command in (reorder, partition):
            assert rows_of(out) == rows_of(at), (seed, told)
        if any(schema.node_order is not None for schema in graphprep.load(str(out)).metadata.node_schemas):
            graphprep.reorder(out, folder / f"back-{number}", by="previous")
            report = graphprep.validate(folder / f"back-{number}")
            assert report.sound, (seed, told, report.faults)
        at = out
    return [[one.split()[0].rstrip(":")] for one in told]


@pytest.mark.parametrize("seed", range(3))
def test_what_commands_write_is_sound(seed, tmp_path):
    check_commands(seed, tmp_path, most=2)


@pytest.mark.heavy
@pytest.mark.parametrize("seed", range(100, 250, 10))
def test_what_chains_of_commands_write_is_sound(seed, tmp_path):
    for number in range(seed, seed + 10):
        (tmp_path / str(number)).mkdir()
        check_commands(number, tmp_path / str(number))
