"""What exports say that graphprep reads back, over all kinds of graphs: exported again, the store that is read gives the same files.

That what they hold is the graph, tests of each target say; `parquet`, which makes the whole store again, is in its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from clients.graphs import GRAPHS, shared_store

import graphprep
from graphprep.exporters.registry import describe_targets

DECODERS = {"edgelist": "graph.csv", "json": "graph.json", "tsv": "graph.tsv"}
READ_BACK = {
    "dgl-chunked": lambda out, store: graphprep.convert(str(out), str(store)),
    **{
        f"deepgnn-{name}": lambda out, store, name=name, file=file: graphprep.convert(
            str(out / file), str(store), format=name, decoder_options=temporal_option(name, out)
        )
        for name, file in DECODERS.items()
    },
}


def temporal_option(name: str, out: Path) -> dict[str, Any]:
    """A file of lines with times is named as such."""
    columns = json.loads((out / "export.json").read_text())["edge_columns"].values()
    has_times = any(one.get("role") in ("time", "created_at") for some in columns for one in some)
    return {"temporal": True} if has_times and name == "edgelist" else {}


def files(folder: Path) -> dict[str, bytes]:
    found = {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    # IDs are typed ones where raw ones cannot be: the maps to these stay with the first export, as do names of types
    apart = ("export.json", "types.json", "id_map/")
    return {name: data for name, data in found.items() if not name.startswith(apart)}


def export(store: Path, out: Path, target: str, **given: Any) -> Path:
    graphprep.export(str(store), str(out), target, drop_unsupported=True, **given)
    return out


def test_all_targets_that_say_so_are_read_back():
    said = {target.name for target in describe_targets() if "graphprep convert" in target.loads_in}
    assert said == {*READ_BACK, "parquet", "edges"}


@pytest.mark.parametrize("target", READ_BACK)
@pytest.mark.parametrize("name", GRAPHS)
def test_what_is_read_back_gives_the_same_files(name, target, tmp_path):
    _, store = shared_store(name)
    out = export(store, tmp_path / "out", target)
    READ_BACK[target](out, tmp_path / "again")
    assert files(export(tmp_path / "again", tmp_path / "second", target)) == files(out)


# ---------------------------------------------------------------------------------------------------- a file for each edge type


def relation(path: Path) -> str:
    return path.stem.replace("__", ":") if path.stem != "_N___E___N" else "_N:_E:_N"


def flags_of_edges(path: Path, store: Path) -> dict[str, Any]:
    columns = {column.role for column in graphprep.load(str(store)).columns(relation(path))}
    given = {f"{role}_col": role for role in ("weight", "time") if role in columns}
    return {"format": "edges", "decoder_options": {"relation": relation(path), "id_type": "auto", **given}}


def flags_of_mtx(path: Path, store: Path) -> dict[str, Any]:
    return {"format": "mtx", "decoder_options": {"relation": relation(path)}}


@pytest.mark.parametrize(
    ("target", "ending", "flags", "given"),
    [("edges", "*[.ct][sx][vt]", flags_of_edges, {"header": True}), ("mtx", "*.mtx", flags_of_mtx, {})],
    ids=["edges", "mtx"],
)
@pytest.mark.parametrize("name", GRAPHS)
def test_files_of_an_edge_type_are_read_back(name, target, ending, flags: Callable[..., Any], given, tmp_path):
    graph, store = shared_store(name)
    out = export(store, tmp_path / "out", target, **given)
    paths = sorted(out.glob(ending))
    assert len(paths) == len(graph.edges)
    for number, path in enumerate(paths):
        graphprep.convert(str(path), str(tmp_path / str(number)), **flags(path, store))
        again = export(tmp_path / str(number), tmp_path / f"{number}-out", target, **given)
        (found,) = again.glob(ending)
        assert found.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("name", [name for name in GRAPHS if len(GRAPHS[name]().edges) == len(GRAPHS[name]().nodes) == 1])
def test_metis_is_read_back(name, tmp_path):
    out = export(shared_store(name)[1], tmp_path / "out", "metis")
    graphprep.convert(str(out / "graph.graph"), str(tmp_path / "again"), format="metis")
    assert files(export(tmp_path / "again", tmp_path / "second", "metis")) == files(out) != {}
