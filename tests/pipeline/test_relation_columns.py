"""Relations as a column: one edge type whose column ``relation`` holds numbers, with their names in the schema."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

import graphprep
from graphprep.model.errors import DataError, UsageError

pd = pytest.importorskip("pandas", reason="pandas is not installed")

RELATIONS = ["eats", "lives_in", "é", "10", "9", "a b", "http://x?y=1"]


def triples(num: int, seed: int = 0) -> pd.DataFrame:
    rng = random.Random(seed)
    rows = [(f"n{rng.randrange(40)}", rng.choice(RELATIONS), f"n{rng.randrange(40)}", i) for i in range(num)]
    return pd.DataFrame(rows, columns=["head", "rel", "tail", "extra"])


def convert(path: Path | list[Path], out: Path, **given: object) -> dict:
    inputs = [str(one) for one in path] if isinstance(path, list) else str(path)
    options = {name: given.pop(name) for name in ("relation_as", "relation_col", "relation", "delimiter") if name in given}
    graphprep.convert(inputs, str(out), decoder_options={"relation_as": "column", **options}, **given)
    return json.loads((out / "metadata.json").read_text())


def check(store: Path, metadata: dict, frame: pd.DataFrame, edge_type: str = "_N:_E:_N") -> None:
    """Hold a store against the table it was made of, with nothing but NumPy and pandas."""
    assert metadata["edge_type"] == [edge_type] and metadata["num_edges_per_type"] == [len(frame)]
    schema = metadata["edge_schema"][edge_type]["columns"][0]
    wanted = sorted(set(frame["rel"]), key=str.encode)
    assert (schema["name"], schema["kind"], schema["dtype"], schema["item_shape"]) == ("relation", "dense", "int64", [])
    assert schema["categories"] == wanted
    folder = next((store / "part-00000" / "edges").iterdir())
    codes = np.empty(len(frame), np.int64)
    codes[np.load(folder / "csc/edge_ids.npy")] = np.load(folder / "data/relation.npy")
    assert [wanted[code] for code in codes] == frame["rel"].tolist()


def test_texts_against_pandas(tmp_path):
    frame = triples(500)
    frame[["head", "rel", "tail"]].to_csv(tmp_path / "kg.tsv", sep="\t", header=False, index=False)
    metadata = convert(tmp_path / "kg.tsv", tmp_path / "out", format="triples")
    check(tmp_path / "out", metadata, frame)


def test_parquet_and_named_columns(tmp_path):
    frame = triples(300)
    frame.to_parquet(tmp_path / "kg.parquet")
    given = {"relation_col": "rel", "relation": "knows"}
    metadata = convert(tmp_path / "kg.parquet", tmp_path / "out", format="triples", **given)
    check(tmp_path / "out", metadata, frame, "_N:knows:_N")
    assert [one["name"] for one in metadata["edge_schema"]["_N:knows:_N"]["columns"]] == ["relation", "extra"]


def test_relations_that_are_numbers_are_names_too(tmp_path):
    frame = pd.DataFrame({"head": [0, 1, 2, 0], "rel": ["9", "10", "9", "2"], "tail": [1, 2, 0, 2]})
    frame.to_csv(tmp_path / "kg.txt", sep=" ", header=False, index=False)
    metadata = convert(tmp_path / "kg.txt", tmp_path / "out", format="edges", relation_col="1")
    check(tmp_path / "out", metadata, frame)


def test_files_of_a_split_keep_it(tmp_path):
    frame = triples(90)
    folder = tmp_path / "kg"
    folder.mkdir()
    for at, part in enumerate(("test", "train", "valid")):
        frame.iloc[at * 30 : (at + 1) * 30, :3].to_csv(folder / f"{part}.txt", sep="\t", header=False, index=False)
    metadata = convert(folder, tmp_path / "out", format="triples")
    check(tmp_path / "out", metadata, frame)
    split = metadata["edge_schema"]["_N:_E:_N"]["columns"][1]
    assert (split["name"], split["role"]) == ("split", "split")


def test_the_same_bytes_for_any_threads_and_limit(tmp_path):
    frame = triples(40_000)
    frame[["head", "rel", "tail"]].to_csv(tmp_path / "kg.tsv", sep="\t", header=False, index=False)
    stores = []
    for threads in (1, 3):
        out = tmp_path / f"out-{threads}"
        convert(tmp_path / "kg.tsv", out, format="triples", run=graphprep.RunOptions(threads=threads))
        stores.append({path.relative_to(out): path.read_bytes() for path in out.rglob("*.npy")})
    assert stores[0] == stores[1]


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("a\tr\tb\na\t\tb\n", "kg.txt:2:3", "field 'relation' is empty"),
        ("a\tr\tb\na\t\xff\tb\n", "kg.txt:2:3", "field 'relation' is not UTF-8, found '\\udcff'"),
    ],
)
def test_a_relation_that_is_none(text, place, message, tmp_path):
    (tmp_path / "kg.txt").write_bytes(text.encode("latin1"))
    with pytest.raises(DataError) as caught:
        convert(tmp_path / "kg.txt", tmp_path / "out", format="triples")
    assert caught.value.place == str(tmp_path / place)
    assert caught.value.message.startswith(message[:30])


def test_what_does_not_go_together(tmp_path):
    (tmp_path / "kg.csv").write_text("src,rel,dst,relation\na,r,b,x\nb,r,c,y\n")
    with pytest.raises(DataError, match=r"kg\.csv:1:1: two columns are called 'relation'"):
        convert(tmp_path / "kg.csv", tmp_path / "out", format="triples", delimiter=",", relation_col="rel")
    (tmp_path / "e.txt").write_text("0 1\n1 2\n")
    with pytest.raises(UsageError, match=r"relation_as.*column.* needs .*relation_col"):
        convert(tmp_path / "e.txt", tmp_path / "out", format="edges")
    with pytest.raises(UsageError, match="relation_as"):
        convert(tmp_path / "e.txt", tmp_path / "out", format="edges", relation_as="row", relation_col="1")


def test_a_thousand_relations_make_a_small_store(tmp_path):
    lines = [f"n{i % 50}\tr{i % 1000}\tn{i * 7 % 50}" for i in range(3000)]
    (tmp_path / "kg.txt").write_text("\n".join(lines) + "\n")
    metadata = convert(tmp_path / "kg.txt", tmp_path / "out", format="triples")
    assert len(metadata["edge_schema"]["_N:_E:_N"]["columns"][0]["categories"]) == 1000
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert len(files) == 9 and sum(path.stat().st_size for path in files) < 150_000
