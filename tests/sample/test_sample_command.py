"""What can be asked of ``sample``, what is refused and in which words, and where seeds come from."""

import json

import numpy as np
import pytest
from shards import layers_of, read_flows

import graphprep
from graphprep.cli.main import run

pd = pytest.importorskip("pandas", reason="pandas is not installed")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shop")
    users = pd.DataFrame({"id": ["ann", "bob", "cid"], "age": [31, 42, 53], "part": ["train", "test", "train"]})
    items = pd.DataFrame({"id": [10, 20]})
    buys = pd.DataFrame(
        {"user": ["ann", "bob", "cid"], "item": [10, 20, 10], "price": [2.5, -1.0, 0.5], "note": ["a", "b", "c"]}
    )
    graphprep.convert(
        [],
        folder / "store",
        nodes={"user": users, "item": items},
        edges={("user", "buys", "item"): buys},
        splits=("user:part",),
    )
    return folder / "store"


def refused(capsys, *args):
    code = run(["sample", *map(str, args), "--progress", "none"])
    return code, capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ([], "error: there are no seeds\n  fix: give --seeds [TYPE=]FILE\n"),
        (
            ["--seeds", "s"],
            "error: nothing says how far flows go\n  fix: give one of --fanouts 15,10,5, --full K and --layer-sizes 512,256\n",
        ),
        (
            ["--seeds", "s", "--full", 1, "--layer-sizes", 5],
            "error: --full and --layer-sizes contradict each other\n"
            "  fix: give one of --fanouts 15,10,5, --full K and --layer-sizes 512,256\n",
        ),
        (
            ["--seeds", "s", "--fanouts", "5,x"],
            "error: --fanouts must be numbers of -1 or more, found '5,x'\n"
            "  fix: write numbers with commas, one a hop, the seeds' first: 15,10,5 (-1: all), or src:rel:dst=10,5,5\n",
        ),
        (
            ["--seeds", "s", "--fanouts", "5", "--fanouts", "user:buys:item=5,2"],
            "error: --fanouts have 1 and 2 hops\n  fix: give each the same number of hops\n",
        ),
        (
            ["--seeds", "s", "--fanouts", "user:sells:item=5,2"],
            "error: --fanouts: there is no edge type 'user:sells:item'\n  fix: did you mean 'user:buys:item'?\n",
        ),
        *(
            (
                ["--seeds", "s", *flags],
                "error: --fanouts are all 0: nothing is drawn\n  fix: draw 1 neighbour or more in some hop\n",
            )
            for flags in (["--fanouts", "0"], ["--fanouts", "0,0", "--fanouts", "user:buys:item=0,0"])
        ),
        (
            ["--seeds", "split:train", "--full", 1],
            "error: there are several node types\n  fix: write --seeds TYPE=FILE, where TYPE is one of user, item\n",
        ),
        (
            ["--seeds", "usr=/a/seeds.txt", "--full", 1],
            "error: there is no node type 'usr'\n  fix: did you mean 'user'? write --seeds TYPE=FILE, where TYPE is one of user, item\n",
        ),
        (["--seeds", "s", "--full", 0], "error: --full must be 1 or more, found 0\n  fix: correct the value\n"),
        (
            ["--seeds", "s", "--full", 1, "--add-self-loop"],
            "error: --add-self-loop: no edge type goes from 'user' to 'user', under which loops could stand\n"
            "  fix: leave it out\n",
        ),
        (
            ["--seeds", "s", "--full", 1, "--weight-column", "prize"],
            "error: --weight-column: no edge type has a column 'prize'\n  fix: did you mean 'price'? use one of price, note\n",
        ),
        (
            ["--seeds", "s", "--full", 1, "--weight-column", "note"],
            "error: --weight-column: column 'note' has no single number an edge\n  fix: name another column\n",
        ),
        (
            ["--seeds", "s", "--full", 1, "--time-column", "price"],
            "error: --time-column and --seed-times go together\n  fix: give both, or none\n",
        ),
        (
            ["--seeds", "s", "--layer-sizes", "5", "--weight-column", "price"],
            "error: --weight-column and --layer-sizes contradict each other\n  fix: draw by --fanouts\n",
        ),
        (
            ["--seeds", "s", "--full", 1, "--copy-column", "user:height"],
            "error: --copy-column: there is no column 'user:height'\n"
            "  fix: did you mean 'user:age'? use one of user:age, user:part, user:buys:item:price, user:buys:item:note\n",
        ),
        (
            ["--seeds", "user=split:valid", "--seeds", "item=split:train", "--full", 1],
            "error: --seeds split:train: 'item' has no split\n"
            "  fix: name train, valid or test of a type with a split, or a file\n",
        ),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, list) else "",
)
def test_what_contradicts_itself_or_the_store_is_refused(store, tmp_path, capsys, flags, words):
    assert refused(capsys, store, tmp_path / "out", *flags) == (2, words)
    assert not (tmp_path / "out").exists()


def test_an_id_that_is_no_node_is_told_with_its_line(store, tmp_path, capsys):
    seeds = tmp_path / "seeds.txt"
    seeds.write_text("bob\nann\ndan\n")
    code, words = refused(capsys, store, tmp_path / "out", "--seeds", f"user={seeds}", "--full", 1)
    assert (code, words) == (
        1,
        f"error: {seeds}:3:1: seed 'dan' is no node of type 'user'\n  fix: correct the ID, or leave it out\n",
    )


def test_times_are_as_many_as_seeds(store, tmp_path, capsys):
    (tmp_path / "seeds.txt").write_text("10\n20\n")
    (tmp_path / "times.txt").write_text("1\n2\n3\n")
    seeds, times = f"item={tmp_path}/seeds.txt", f"{tmp_path}/times.txt"
    flags = ("--seeds", seeds, "--seed-times", times, "--time-column", "price", "--full", 1)
    code, words = refused(capsys, store, tmp_path / "out", *flags)
    assert (code, words) == (
        1,
        f"error: {times}: expected 2 times, one for each of {seeds}, found 3\n  fix: write one time a seed\n",
    )


def test_a_weight_below_zero_is_told_with_its_place(store, tmp_path, capsys):
    (tmp_path / "seeds.txt").write_text("10\n20\n")
    flags = ("--seeds", f"item={tmp_path}/seeds.txt", "--fanouts", "1", "--weight-column", "price")
    code, words = refused(capsys, store, tmp_path / "out", *flags)
    place = store / "part-00000/edges/user__buys__item/data/price.npy"
    assert code == 1
    assert words.startswith(f"error: {place}[2]: expected a weight of 0 or more, found -1.0\n  fix: ")


def test_rows_that_do_not_tell_their_edges_are_refused(tmp_path, capsys):
    """A second layout without edge IDs and columns has nothing that leads to an edge."""
    (tmp_path / "edges.txt").write_text("0 1\n1 0\n0 0\n")
    (tmp_path / "seeds.txt").write_text("0\n")
    graphprep.convert(tmp_path / "edges.txt", tmp_path / "store", layout="both", edge_ids=False)
    flags = ("--seeds", tmp_path / "seeds.txt", "--full", 1)
    assert refused(capsys, tmp_path / "store", tmp_path / "out", *flags, "--direction", "out") == (
        2,
        "error: the CSR rows of '_N:_E:_N' do not tell their edges\n"
        "  fix: convert without --no-edge-ids, or draw in the other --direction\n",
    )
    assert refused(capsys, tmp_path / "store", tmp_path / "out", *flags) == (0, "")


def test_what_is_no_samples_is_never_replaced(store, tmp_path, capsys):
    (tmp_path / "seeds.txt").write_text("10\n")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("dear to me")
    flags = ("--seeds", f"item={tmp_path}/seeds.txt", "--full", 1)
    assert refused(capsys, store, tmp_path / "out", *flags) == (
        2,
        f"error: {tmp_path}/out: the output exists\n  fix: choose another name, or give --overwrite\n",
    )
    code, words = refused(capsys, store, tmp_path / "out", *flags, "--overwrite")
    assert code == 2
    assert "holds files that sample does not write" in words
    assert (tmp_path / "out" / "mine.txt").read_text() == "dear to me"


def test_samples_are_replaced_by_overwrite(store, tmp_path):
    (tmp_path / "seeds.txt").write_text("10\n")
    for file_format in ("npz", "parquet"):
        graphprep.sample(
            store, tmp_path / "out", seeds=f"item={tmp_path}/seeds.txt", full=1, overwrite=True, format=file_format
        )
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"manifest.json", "samples-00000.parquet"}


def names(arrays, types=("user", "item")):
    return {name: [node for node, _ in nodes] for name, nodes in layers_of(arrays, types)[-1].items()}


def test_seeds_are_raw_ids_typed_ids_or_a_part_of_the_split(store, tmp_path):
    (tmp_path / "raw.jsonl").write_text('"cid"\n"ann"\n')
    np.save(tmp_path / "typed.npy", np.array([2, 0]))
    pd.DataFrame({"id": ["cid", "ann"], "other": [1, 2]}).to_parquet(tmp_path / "raw.parquet")
    for number, (seeds, wanted, options) in enumerate(
        [
            (f"user={tmp_path}/raw.jsonl", [2, 0], {}),
            (f"user={tmp_path}/raw.parquet", [2, 0], {}),
            (f"user={tmp_path}/typed.npy", [2, 0], {"typed_ids": True}),
            ("user=split:train", [0, 2], {}),
        ]
    ):
        summary = graphprep.sample(store, tmp_path / str(number), seeds=seeds, full=1, shuffle=False, **options)
        (arrays,) = read_flows(tmp_path / str(number))
        assert names(arrays) == {"user": wanted}
        assert (summary.num_seeds, summary.num_flows, summary.num_layers, summary.num_sampled_nodes) == (2, 1, 2, 2)


def test_the_summary_tells_what_was_drawn(store, tmp_path, capsys):
    (tmp_path / "seeds.txt").write_text("10\n20\n")
    flags = [
        str(store),
        str(tmp_path / "out"),
        "--seeds",
        f"item={tmp_path}/seeds.txt",
        "--full",
        "1",
        "--time-column",
        "price",
    ]
    (tmp_path / "times.txt").write_text("1\n2\n")
    assert run(["sample", *flags, "--seed-times", f"{tmp_path}/times.txt", "--json", "--progress", "none"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {
        name: told[name] for name in ("num_seeds", "num_flows", "num_layers", "num_sampled_nodes", "num_sampled_edges")
    } == {
        "num_seeds": 2,
        "num_flows": 1,
        "num_layers": 2,
        "num_sampled_nodes": 4,
        "num_sampled_edges": 2,
    }
    assert told["num_nodes"] == {"user": 3, "item": 2}


def test_the_summary_shows_flows_and_not_the_types_of_the_store(store, tmp_path, capsys):
    flags = [str(store), str(tmp_path / "out"), "--seeds", "user=split:train", "--full", "1", "--direction", "out"]
    assert run(["sample", *flags, "--progress", "none"]) == 0
    head, work = capsys.readouterr().out.splitlines()
    assert head == f"{tmp_path}/out: 1 flow of 2 layers, 3 nodes, 2 edges"
    assert work.startswith("  read ")
    shown = str(graphprep.sample(store, tmp_path / "two", seeds="user=split:train", full=1, direction="out"))
    head, work = shown.splitlines()
    assert (head, work[:8]) == (f"{tmp_path}/two: 1 flow of 2 layers, 3 nodes, 2 edges", "  wrote ")


def test_a_file_of_seeds_that_is_not_there_may_be_meant_as_a_type(tmp_path, capsys):
    (tmp_path / "edges.txt").write_text("0 1\n1 0\n")
    graphprep.convert(tmp_path / "edges.txt", tmp_path / "store")
    code, words = refused(capsys, tmp_path / "store", tmp_path / "out", "--seeds", f"X={tmp_path}/s.txt", "--full", 1)
    assert code == 3
    assert words.endswith(
        "no such file or folder\n  fix: check the spelling of the path; the node type of --seeds TYPE=FILE is _N\n"
    )


def test_seeds_come_from_stdin(store, tmp_path, monkeypatch):
    (tmp_path / "seeds.txt").write_text("cid\nann\n")
    with (tmp_path / "seeds.txt").open() as file:
        monkeypatch.setattr("sys.stdin", file)
        graphprep.sample(store, tmp_path / "out", seeds="user=-", full=1, shuffle=False)
    (arrays,) = read_flows(tmp_path / "out")
    assert names(arrays) == {"user": [2, 0]}


@pytest.mark.parametrize("seeds", [[0, 1], 0, np.array([0, 1]), {"user": [0]}], ids=str)
def test_ids_in_memory_are_no_files(store, tmp_path, seeds):
    with pytest.raises(graphprep.GraphprepError) as error:
        graphprep.sample(store, tmp_path / "out", seeds=seeds, full=1)
    assert (str(error.value), error.value.exit_code) == (
        f"seeds must be files, found {seeds!r}\n"
        "  fix: write IDs to a file, or draw around IDs in memory: graphprep.neighbor_sampling(graph, IDS)",
        2,
    )


def test_a_store_anywhere_gives_the_same_samples(store, tmp_path):
    import fsspec

    (tmp_path / "seeds.txt").write_text("20\n10\n")
    graphprep.sample(store, tmp_path / "out", seeds=f"item={tmp_path}/seeds.txt", fanouts=[2], copy_columns="age")
    memory = fsspec.filesystem("memory")
    memory.put(str(store), "/sample-store", recursive=True)
    memory.put(str(tmp_path / "seeds.txt"), "/sample-seeds.txt")
    graphprep.sample(
        "memory://sample-store", "memory://sample-out", seeds="item=memory://sample-seeds.txt", fanouts=[2], copy_columns="age"
    )
    for path in (tmp_path / "out").iterdir():
        assert memory.cat(f"/sample-out/{path.name}") == path.read_bytes()
    for name in ("/sample-store", "/sample-out"):
        memory.rm(name, recursive=True)
