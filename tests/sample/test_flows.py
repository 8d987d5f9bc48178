"""Flows agree with the naive ones, edge by edge, and their bytes do not depend on how they were made."""

import dataclasses
import hashlib
from pathlib import Path

import numpy as np
import pytest
from naive import flow
from shards import blocks_of, layers_of, read_flows

import graphprep
from graphprep.model.errors import DataError, UsageError
from graphprep.sample import command, rows

SAMPLE_DATA = Path(__file__).resolve().parents[2] / "sample_data"
TYPES = ("item", "user")
EDGES = {("user", "buys", "item"): (40, 12), ("user", "knows", "user"): (40, 40), ("item", "like", "item"): (12, 12)}
NAMES = tuple(EDGES)  # the order in which the store has them


def make_graph(seed=3):
    random = np.random.default_rng(seed)
    graph = {}
    for name, (sources, destinations) in EDGES.items():
        num = 260
        graph[name] = {
            "src": random.integers(0, sources, num),
            "dst": random.integers(0, destinations, num) ** 2 // destinations,  # some rows are long
            "weight": np.where(random.random(num) < 0.1, 0.0, random.random(num)).astype(np.float32),
            "time": random.integers(0, 50, num),
        }
    return graph


@pytest.fixture(scope="module")
def graph():
    return make_graph()


def convert(graph, out, **options):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")

    nodes = {
        name: pd.DataFrame({"id": np.arange(size), "x": np.arange(size) * 1.5}) for name, size in (("item", 12), ("user", 40))
    }
    edges = {name: pd.DataFrame(columns) for name, columns in graph.items()}
    graphprep.convert([], out, nodes=nodes, edges=edges, **options)
    return out


@pytest.fixture(scope="module")
def store(graph, tmp_path_factory):
    return convert(graph, tmp_path_factory.mktemp("store") / "store")


@pytest.fixture(scope="module")
def seeds(tmp_path_factory):
    folder = tmp_path_factory.mktemp("seeds")
    random = np.random.default_rng(5)
    users, items = random.integers(0, 40, 13), random.integers(0, 12, 6)
    (folder / "users.txt").write_text("".join(f"{one}\n" for one in users))
    np.save(folder / "items.npy", items)
    (folder / "user_times.txt").write_text("".join(f"{one}\n" for one in random.integers(5, 50, 13)))
    (folder / "item_times.txt").write_text("".join(f"{one}\n" for one in random.integers(5, 50, 6)))
    return folder


def seed_options(seeds, *, timed=False):
    times = (f"{seeds}/user_times.txt", f"{seeds}/item_times.txt")
    return {
        "seeds": (f"user={seeds}/users.txt", f"item={seeds}/items.npy"),
        **({"time_column": "time", "seed_times": times} if timed else {}),
    }


def naive_flows(graph, seeds, blocks, fanouts, *, batch_size, timed, **options):
    """Yield the naive flows of the seeds, in their order."""
    listed = []
    for name, ids, times in (
        ("user", np.loadtxt(seeds / "users.txt", int), np.loadtxt(seeds / "user_times.txt", int)),
        ("item", np.load(seeds / "items.npy"), np.loadtxt(seeds / "item_times.txt", int)),
    ):
        listed += [(name, (int(node), int(time) if timed else None)) for node, time in zip(ids, times, strict=True)]
    edges = [
        (name[0], name[2], list(zip(*(graph[name][key].tolist() for key in ("src", "dst", "weight", "time")), strict=True)))
        for name in NAMES
    ]
    for batch, at in enumerate(range(0, len(listed), batch_size)):
        some = {}
        for name, node in listed[at : at + batch_size]:
            some.setdefault(name, {})[node] = None
        some = {name: list(nodes) for name, nodes in some.items()}
        yield flow(edges, blocks, some, fanouts, batch=batch, timed=timed, **options)


BLOCKS = {
    "in": [(number, False) for number in range(3)],
    "out": [(number, True) for number in range(3)],
    "both": [*((number, False) for number in range(3)), *((number, True) for number in range(3))],
}
CASES = {
    "uniform": ({}, {}),
    "replace": ({"replace": True}, {"replace": True}),
    "weighted": ({"weight_column": "weight"}, {"weighted": True}),
    "weighted, replace": ({"weight_column": "weight", "replace": True}, {"weighted": True, "replace": True}),
    "times": ({}, {"timed": True}),
    "times, weighted": ({"weight_column": "weight"}, {"weighted": True, "timed": True}),
}


@pytest.mark.parametrize("streamed", [False, True], ids=["held", "streamed"])
@pytest.mark.parametrize("direction", BLOCKS)
@pytest.mark.parametrize("case", CASES)
def test_flows_are_those_of_the_definition(graph, store, seeds, tmp_path, monkeypatch, case, direction, streamed):
    if streamed:
        stream_all(monkeypatch)
    own, wanted = CASES[case]
    blocks = BLOCKS[direction]
    fanouts = ("4,3,-1", "user:buys:item=2,0,5")
    by_hop = [[{0: own}.get(number, every) for number, _ in blocks] for every, own in ((4, 2), (3, 0), (-1, 5))]
    timed = wanted.get("timed", False)
    options = {**own, **seed_options(seeds, timed=timed)}
    graphprep.sample(
        store, tmp_path / "out", fanouts=fanouts, direction=direction, batch_size=5, shuffle=False, seed=7 << 40, **options
    )
    ends = [NAMES[number][::2][:: -1 if is_reversed else 1] for number, is_reversed in blocks]
    naive = naive_flows(graph, seeds, blocks, by_hop, batch_size=5, seed=7 << 40, **{"timed": False, **wanted})
    for arrays, (layers, edges) in zip(read_flows(tmp_path / "out"), naive, strict=True):
        assert layers_of(arrays, TYPES) == layers
        assert blocks_of(arrays, TYPES, ends) == edges


def stream_all(monkeypatch):
    """Let nothing be held, for want of memory, and let pieces be small."""
    real = rows.hold_or_stream

    def stream(every, room):
        found = real(every, dataclasses.replace(room, piece_bytes=256, mapped_bytes=-1))
        assert all(isinstance(one, rows.StreamedRows) for one in found)
        return found

    monkeypatch.setattr(command, "hold_or_stream", stream)


def test_loops_stand_at_the_head_of_rows(tmp_path):
    graph = {("n", "e", "n"): {"src": np.array([1, 2, 0, 2]), "dst": np.array([0, 0, 1, 1])}}
    pd = pytest.importorskip("pandas", reason="pandas is not installed")

    graphprep.convert([], tmp_path / "store", edges={name: pd.DataFrame(columns) for name, columns in graph.items()})
    (tmp_path / "seeds.txt").write_text("0\n2\n")
    graphprep.sample(
        tmp_path / "store", tmp_path / "out", seeds=tmp_path / "seeds.txt", full=2, add_self_loop=True, shuffle=False
    )
    (arrays,) = read_flows(tmp_path / "out")
    edges = [
        (source, destination, weight, None)
        for source, destination, weight in zip([1, 2, 0, 2], [0, 0, 1, 1], [1] * 4, strict=True)
    ]
    layers, blocks = flow([("n", "n", edges)], [(0, False)], {"n": [(0, None), (2, None)]}, [[-1], [-1]], loops=(0,))
    assert layers_of(arrays, ("n",)) == layers
    assert blocks_of(arrays, ("n",), [("n", "n")]) == blocks
    assert blocks[1] == [
        [((0, None), (0, None), -1), ((1, None), (0, None), 0), ((2, None), (0, None), 1), ((2, None), (2, None), -1)]
    ]


def test_a_node_is_met_once_for_each_time(tmp_path):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")

    edges = pd.DataFrame({"src": [1, 2], "dst": [0, 0], "at": [10, 20]})
    graphprep.convert([], tmp_path / "store", edges={("n", "e", "n"): edges})
    (tmp_path / "seeds.txt").write_text("0\n0\n0\n")
    (tmp_path / "times.txt").write_text("15\n25\n10\n")
    graphprep.sample(
        tmp_path / "store",
        tmp_path / "out",
        seeds=tmp_path / "seeds.txt",
        seed_times=tmp_path / "times.txt",
        time_column="at",
        full=1,
        shuffle=False,
    )
    (arrays,) = read_flows(tmp_path / "out")
    assert layers_of(arrays, ("n",)) == [{"n": [(1, 15), (1, 25), (2, 25)]}, {"n": [(0, 15), (0, 25), (0, 10)]}]
    assert arrays["indptr"].tolist() == [0, 1, 3, 3]  # no edge is before 10


# ---- the same bytes


def digest(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize(
    "options",
    [
        {"fanouts": (5, 3, 2), "epochs": 2},
        {"fanouts": "6,4", "weight_column": "weight", "direction": "both", "copy_columns": ("x", "weight")},
        {"layer_sizes": "6,4"},
        {"layer_sizes": "6,4", "layer_method": "fastgcn", "replace": True},
    ],
    ids=["uniform", "weighted", "ladies", "fastgcn"],
)
def test_bytes_do_not_depend_on_threads_memory_and_range_partitions(graph, store, seeds, tmp_path, monkeypatch, options):
    options = {**options, **seed_options(seeds), "batch_size": 4}
    graphprep.sample(store, tmp_path / "one", **options, threads=1)
    wanted = digest(tmp_path / "one")
    graphprep.sample(store, tmp_path / "many", **options, threads=3)
    assert digest(tmp_path / "many") == wanted
    parted = convert(graph, tmp_path / "parted", partitions=3, layout="both")
    graphprep.sample(parted, tmp_path / "three", **options)
    assert digest(tmp_path / "three") == wanted
    out_edges = convert(graph, tmp_path / "csr", partitions=2, layout="csr")
    graphprep.sample(out_edges, tmp_path / "turned", **options)
    assert digest(tmp_path / "turned") == wanted
    with monkeypatch.context() as patched:
        stream_all(patched)
        graphprep.sample(parted, tmp_path / "streamed", **options, threads=2)
    assert digest(tmp_path / "streamed") == wanted
    assert digest(tmp_path / "one") != {}


def test_a_layout_that_is_made_has_the_neighbour_order_of_a_stored_one(tmp_path):
    """Of a temporal shop, whose edges are in the order of their creation: the column is read for that alone."""
    (tmp_path / "seeds.txt").write_text("101\n105\n121\n")
    drawn = []
    for layout in ("csc", "both"):
        shop = SAMPLE_DATA / "shop" / "shop_temporal.edgelist"
        how = {"format": "edgelist", "decoder_options": {"temporal": True}, "neighbor_order": "time"}
        graphprep.convert(shop, tmp_path / layout, layout=layout, **how)
        options = {"seeds": f"0={tmp_path}/seeds.txt", "full": 2, "direction": "out"}
        graphprep.sample(tmp_path / layout, tmp_path / f"{layout}-out", **options)
        drawn.append(digest(tmp_path / f"{layout}-out"))
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize("streamed", [False, True], ids=["held", "streamed"])
def test_flows_that_memory_has_no_room_for_beside_others_are_drawn_alone(store, seeds, tmp_path, monkeypatch, streamed):
    options = {**seed_options(seeds), "fanouts": (5, 3), "batch_size": 4}
    graphprep.sample(store, tmp_path / "plenty", **options)
    if streamed:
        stream_all(monkeypatch)
    grow_all = command.grow_all

    def limit(most_bytes):
        def grow(asked, rows, seeds, options, _, threads):
            return grow_all(asked, rows, seeds, options, most_bytes, threads)

        monkeypatch.setattr(command, "grow_all", grow)

    arrays = list(read_flows(tmp_path / "plenty"))
    needs = [96 * one["sources"].size + 32 * (one["indptr"].size - 6) + 56 * 4 for one in arrays]  # edges, rows and seeds
    limit(2 * max(needs))
    graphprep.sample(store, tmp_path / "little", **options)
    assert digest(tmp_path / "little") == digest(tmp_path / "plenty")
    limit(max(needs))
    with pytest.raises(
        graphprep.GraphprepError, match=r"a flow takes at least .*, and the memory limit leaves .* for one"
    ) as error:
        graphprep.sample(store, tmp_path / "none", **options)
    assert error.value.fix == "raise memory_limit, or lower batch_size or the fan-outs"
    assert not (tmp_path / "none").exists()


def test_a_row_that_is_too_long_to_draw_from_by_weight_is_told(graph, store, seeds, tmp_path, monkeypatch):
    grow_all = command.grow_all
    monkeypatch.setattr(
        command,
        "grow_all",
        lambda asked, rows, seeds, options, _, threads: grow_all(asked, rows, seeds, options, 2 * 48 * (longest - 1), threads),
    )
    longest = max(np.bincount(one["dst"]).max() for one in graph.values())
    options = {**seed_options(seeds), "fanouts": 1, "batch_size": 1}
    graphprep.sample(store, tmp_path / "uniform", **options)
    with pytest.raises(graphprep.GraphprepError, match="a flow takes at least") as error:
        graphprep.sample(store, tmp_path / "weighted", **options, weight_column="weight")
    assert error.value.fix == "raise memory_limit, or lower batch_size or the fan-outs"


def test_another_seed_draws_other_edges(store, seeds, tmp_path):
    drawn = set()
    for seed in (0, 1, 2**63):
        graphprep.sample(store, tmp_path / str(seed), fanouts="3,3", seed=seed, **seed_options(seeds))
        drawn.add(digest(tmp_path / str(seed))["samples-00000.npz"])
    assert len(drawn) == 3


def test_every_epoch_has_all_seeds_in_an_order_of_its_own(store, seeds, tmp_path):
    graphprep.sample(store, tmp_path / "out", seeds=f"user={seeds}/users.txt", fanouts="1", epochs=3, batch_size=5)
    flows = list(read_flows(tmp_path / "out"))
    assert len(flows) == 9
    epochs = [[node for arrays in flows[at : at + 3] for node, _ in layers_of(arrays, TYPES)[-1]["user"]] for at in (0, 3, 6)]
    listed = np.loadtxt(seeds / "users.txt", int).tolist()
    assert len({tuple(one) for one in epochs}) == 3
    assert all(set(one) == set(listed) for one in epochs)


def test_parquet_holds_what_npz_does(store, seeds, tmp_path):
    options = {"fanouts": "4,2", "copy_columns": ("x", "user:buys:item:weight"), "batch_size": 5, **seed_options(seeds)}
    graphprep.sample(store, tmp_path / "npz", **options)
    graphprep.sample(store, tmp_path / "parquet", **options, format="parquet")
    for one, other in zip(read_flows(tmp_path / "npz"), read_flows(tmp_path / "parquet"), strict=True):
        assert one.keys() == other.keys()
        for name, values in one.items():
            assert values.tolist() == other[name].tolist(), name


def test_copied_columns_are_those_of_the_nodes_and_edges(graph, store, seeds, tmp_path):
    options = {"fanouts": "4,2", "direction": "both", "copy_columns": ("user:x", "weight"), "batch_size": 5}
    graphprep.sample(store, tmp_path / "out", **options, **seed_options(seeds))
    ends = [NAMES[number][::2][:: -1 if is_reversed else 1] for number, is_reversed in BLOCKS["both"]]
    for arrays in read_flows(tmp_path / "out"):
        users = [node for layer in layers_of(arrays, TYPES) for node, _ in layer.get("user", ())]
        assert arrays["nodes/user/x"].tolist() == [1.5 * node for node in users]
        assert "nodes/item/x" not in arrays
        blocks = blocks_of(arrays, TYPES, ends)
        for at, (number, is_reversed) in enumerate(BLOCKS["both"]):
            member = f"{'reversed' if is_reversed else 'edges'}/{'__'.join(NAMES[number])}/weight"
            ids = [edge_id for block in blocks for _, _, edge_id in block[at]]
            assert arrays[member].tolist() == graph[NAMES[number]]["weight"][ids].tolist()


# ---- edges without a time, and types without times


@pytest.fixture
def half_timed(tmp_path):
    """Node 0 has in-edges 1 (at 10), 2 (no time), 3 (at 30) of type e, and 4 of type f, which has no times."""
    (tmp_path / "e.csv").write_text("src,dst,at\n1,0,10\n2,0,\n3,0,30\n")
    (tmp_path / "f.csv").write_text("src,dst\n4,0\n")
    edges = {("n", "e", "n"): tmp_path / "e.csv", ("n", "f", "n"): tmp_path / "f.csv"}
    graphprep.convert([], tmp_path / "store", edges=edges, nodes={"n": pd_ids(5)})
    (tmp_path / "seeds.txt").write_text("0\n")
    (tmp_path / "times.txt").write_text("20\n")
    return tmp_path


def pd_ids(size):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    return pd.DataFrame({"id": range(size)})


def timed_options(folder):
    return {"seeds": folder / "seeds.txt", "seed_times": folder / "times.txt", "time_column": "at", "fanouts": "-1"}


def sources_of(folder):
    (arrays,) = read_flows(folder)
    return sorted(node for node, _ in layers_of(arrays, ("n",))[0]["n"])


def test_an_edge_without_a_time_is_refused(half_timed):
    with pytest.raises(DataError) as caught:
        graphprep.sample(half_timed / "store", half_timed / "out", **timed_options(half_timed))
    assert "1 edge of type 'n:e:n' has no time in 'at'" in str(caught.value)
    assert not (half_timed / "out").exists()
    with pytest.raises(DataError, match="has no time in 'at'"):
        graphprep.neighbor_sampling(graphprep.load(half_timed / "store"), [0], seed_times=[20], time_column="at", fanouts="-1")


@pytest.mark.parametrize("streamed", [False, True], ids=["held", "streamed"])
@pytest.mark.parametrize(
    ("given", "wanted", "note"),
    [
        ({"missing_time": "drop"}, [1, 4], "1 edge of type 'n:e:n' has no time: never drawn (missing_time=\"drop\")"),
        ({"missing_time": "15"}, [1, 2, 4], '(missing_time="15")'),
        ({"missing_time": "20"}, [1, 4], '(missing_time="20")'),
        ({"missing_time": "-3", "untimed": "exclude"}, [1, 2], 'are not drawn (untimed="include" draws them)'),
        ({"missing_time": "drop", "untimed": "include"}, [1, 4], '(untimed="exclude" leaves them out)'),
    ],
)
def test_the_rule_for_missing_times_and_untimed_types_holds(half_timed, monkeypatch, given, wanted, note, streamed):
    if streamed:
        stream_all(monkeypatch)
    options = timed_options(half_timed)
    summary = graphprep.sample(half_timed / "store", half_timed / "out", **options, **given)
    assert sources_of(half_timed / "out") == wanted
    assert any(note in one for one in summary.notes), summary.notes
    del options["seeds"], options["seed_times"]
    live = graphprep.neighbor_sampling(graphprep.load(half_timed / "store"), [0], seed_times=[20], **options, **given)
    assert sorted(live[0].layer_parent_nid(0).tolist()) == wanted
    assert live.notes == summary.notes


def test_rules_for_times_need_times(half_timed):
    for name, value in (("missing_time", "drop"), ("untimed", "exclude")):
        with pytest.raises(UsageError, match=name):
            graphprep.sample(half_timed / "store", half_timed / "o", seeds=half_timed / "seeds.txt", full=1, **{name: value})
    with pytest.raises(UsageError, match="must be refuse, drop or a time"):
        graphprep.sample(half_timed / "store", half_timed / "o", **timed_options(half_timed), missing_time="keep")
