"""Several operations in one ``transform`` make what one command each makes, and ``parent_id`` means the first store."""

import numpy as np
import pytest
from golden.golden_cases import load_cases, read_store
from property.chains import TAG, Drawer, attempt, write_store

import graphprep

GOLDEN = [case.store for case in load_cases() if (case.store / "metadata.json").exists()]


def without_parents(store, out):
    """Write a store again without ``parent_id``."""
    graph = graphprep.load(str(store))
    has = any(one.name == "parent_id" for of in (*graph.node_types, *graph.edge_types) for one in graph.columns(of))
    words = ["drop-columns", "parent_id"] if has else ["self-loops", "keep"]
    graphprep.transform(store, out, words)
    return out


def ids_by_tag(graph):
    """Return the typed ID or edge ID of every node and edge by the text that names it."""
    found = {}
    for of in (*graph.node_types, *graph.edge_types):
        if TAG in {column.name for column in graph.columns(of)}:
            has_ids = not isinstance(of, str) and graph.metadata.edge_schemas[graph.edge_types.index(of)].edge_id_dtype
            table = graph.to_arrow(of) if isinstance(of, str) else graph.to_arrow(of, order="ids" if has_ids else "rows")
            found |= {text: number for number, text in enumerate(table[TAG].to_pylist())}
    return found


def check_parents(first, store):
    """Hold ``parent_id`` against the texts that name each node and edge of the first store; what is new has -1 and no text."""
    graph, ids = graphprep.load(str(store)), ids_by_tag(graphprep.load(str(first)))
    for of in (*graph.node_types, *graph.edge_types):
        if {TAG, "parent_id"} <= {column.name for column in graph.columns(of)}:
            order = {} if isinstance(of, str) else {"order": "rows"}
            rows = graph.to_arrow(of, **order).select([TAG, "parent_id"]).to_pylist()
            assert [row["parent_id"] for row in rows] == [-1 if row[TAG] is None else ids[row[TAG]] for row in rows], of


def check_chain(seed, folder, most=5):
    """Draw a store and a chain, run it in one command and in one each, and compare every byte."""
    rng = np.random.default_rng(seed)
    is_golden = rng.random() < 0.4
    store = GOLDEN[int(rng.integers(len(GOLDEN)))] if is_golden else write_store(rng, folder)
    drawer, at, chain, told = Drawer(rng, folder), store, [], None
    options = {"ids": "preserved"} if rng.random() < 0.15 else {}
    for number in range(int(rng.integers(2, most + 1))):
        words = drawer.draw(at)
        chain.append(words)
        told = attempt(at, folder / f"with-{number}", words, **options)
        if told is not None:
            break
        report = graphprep.validate(folder / f"with-{number}")
        assert report.sound, (chain, report.faults)
        at = without_parents(folder / f"with-{number}", folder / f"step-{number}")
    words = [word for one in chain for word in one]
    found = attempt(store, folder / "once", words, **options)
    assert found == told, (seed, chain)
    if told is not None:
        return chain
    report = graphprep.validate(folder / "once")
    assert report.sound, (seed, chain, report.faults)
    wanted = read_store(at)
    made = read_store(without_parents(folder / "once", folder / "once-without"))
    assert set(wanted) == set(made), (seed, chain)
    assert [path for path in wanted if wanted[path] != made[path]] == [], (seed, chain)
    check_parents(store, folder / "once")
    return chain


@pytest.mark.parametrize("seed", range(6))
def test_a_chain_is_its_operations_one_by_one(seed, tmp_path):
    check_chain(seed, tmp_path, most=2)


@pytest.mark.heavy
@pytest.mark.parametrize("seed", range(100, 300, 10))
def test_chains_are_their_operations_one_by_one(seed, tmp_path):
    for number in range(seed, seed + 10):
        (tmp_path / str(number)).mkdir()
        check_chain(number, tmp_path / str(number))
