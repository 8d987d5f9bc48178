"""The suite that every exporter passes: ours, and yours.

Inherit it in a test module, and name the target::

    class TestMine(ExporterContract):
        target = "mine"
        refuses = ("heterogeneous",)
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

import graphprep
from graphprep.edges.moves import Workspace
from graphprep.exporters.registry import find_exporter, make_exporter
from graphprep.exporters.unsupported import all_columns
from graphprep.model.errors import DataError, StorageError, UsageError
from graphprep.model.export import Unsupported

GRAPHS = ("homogeneous", "heterogeneous", "texts", "several", "sparse_parts", "empty")
_LINES = {
    "homogeneous": "".join(f"{i % 7} {(i * 5 + 1) % 7} {i / 4}\n" for i in range(40)),
    "several": "".join(f"{i * i % 11} {(i * 3 + 2) % 11} {i}\n" for i in range(60)),
    "sparse_parts": "0 1 1\n1 2 2\n0 2 3\n2 2 4\n",
    "texts": "ada bob 1\nbob eve 2\neve ada 3\nada eve 4\nada bob 5\n",
    "empty": "",
}


_CONFIG = """\
labels: user:grade
splits: user:part
seeds: user=seeds.txt
nodes:
  - {type: user, files: users.csv, id_col: id, columns: {tags: list<int32>}}
  - {type: item, files: items.csv, id_col: id}
edges:
  - {type: "user:buys:item", files: buys.csv, src_col: src, dst_col: dst, weight_col: weight, time_col: time}
  - {type: "user:knows:user", files: knows.csv, src_col: src, dst_col: dst}
"""
_TABLES = {
    "users.csv": "id,age,score,name,tags,grade,part\n"
    + "".join(f"{i},{i + 20},{i / 8},u{i},[{i};{i * 2}],{i % 4},{('train', 'valid', 'test')[i % 3]}\n" for i in range(9)),
    "items.csv": "id,price\n" + "".join(f"{100 + i},{i * 1.5}\n" for i in range(4)),
    "buys.csv": "src,dst,amount,weight,time\n" + "".join(f"{i % 9},{100 + i % 4},{i},{i / 4},{i * 60}\n" for i in range(20)),
    "knows.csv": "src,dst\n" + "".join(f"{i % 9},{i * 2 % 9}\n" for i in range(12)),
    "graph.yaml": _CONFIG,
}


class ExporterContract:
    """Inherit, and define ``target``.

    ``options`` are those of the target; ``refuses`` names the graphs of ``GRAPHS`` that it cannot hold.
    """

    target: ClassVar[str]
    options: ClassVar[Mapping[str, Any]] = {}
    refuses: ClassVar[Sequence[str]] = ()

    # ------------------------------------------------------------------------------------------ helpers

    @pytest.fixture(params=GRAPHS)
    def graph(self, request: pytest.FixtureRequest) -> str:
        """Return the name of a graph, one after another."""
        return str(request.param)

    @pytest.fixture
    def graph_store(self, graph: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
        """Return the store of a graph that the target can hold, only to be read."""
        if graph in self.refuses:
            pytest.skip(f"{self.target} holds no graph of this kind")
        return _shared_store(graph, tmp_path_factory)

    def export(self, store: Path, out: Path | str, **given: Any) -> graphprep.ExportSummary:
        """Export a store, without what the target does not support."""
        given = {"drop_unsupported": True, **self.options, **given}
        return graphprep.export(str(store), str(out), self.target, **given)

    # ------------------------------------------------------------------------------------------ what must hold

    def test_says_what_it_is(self) -> None:
        """The class names itself, what loads its files, what they carry and need; every option has a default."""
        cls = find_exporter(self.target)
        for name in ("name", "loads_in", "carries", "needs", "root_file"):
            text = getattr(cls, name)
            assert isinstance(text, str) and text and "\n" not in text, name
        assert cls.name == self.target  # type: ignore[attr-defined]
        assert cls.node_ids in ("dense", "own")  # type: ignore[attr-defined]
        assert dataclasses.is_dataclass(cls) and cls.__dataclass_params__.frozen  # type: ignore[attr-defined]
        make_exporter(self.target, {})

    def test_unknown_options_are_refused(self, tmp_path: Path) -> None:
        """An option that the target does not have is named."""
        with pytest.raises(UsageError, match="has no option 'no_such_option'"):
            self.export(make_store("homogeneous", tmp_path), tmp_path / "out", no_such_option=1)

    def test_exports(self, graph: str, graph_store: Path, tmp_path: Path) -> None:
        """The files are there, and say what they are."""
        summary = self.export(graph_store, tmp_path / "out")
        files = _files(tmp_path / "out")
        assert find_exporter(self.target).root_file in files  # type: ignore[attr-defined]
        record = json.loads(files["export.json"])
        assert (record["format"], record["target"]) == ("graphprep-export", self.target)
        assert summary.num_files == len(files)
        assert summary.output_bytes == sum(map(len, files.values()))

    def test_what_it_refuses_is_said(self, tmp_path: Path) -> None:
        """A graph that the target cannot hold is refused with words, and nothing is written."""
        for graph in self.refuses:
            with pytest.raises((UsageError, DataError)):
                self.export(make_store(graph, tmp_path / graph), tmp_path / "out")
            assert not (tmp_path / "out").exists()

    def test_same_bytes_for_any_threads_and_memory(
        self, graph_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Threads, and pieces of a few rows, change nothing."""
        self.export(graph_store, tmp_path / "first", run=graphprep.RunOptions(threads=1))
        wanted = _files(tmp_path / "first")
        from graphprep.rewrite import run as store_run

        real = store_run.room_for

        def starved(*given: Any) -> Workspace:
            return dataclasses.replace(real(*given), piece_bytes=64, held_bytes=0, mapped_bytes=0)

        monkeypatch.setattr(store_run, "room_for", starved)
        self.export(graph_store, tmp_path / "second", run=graphprep.RunOptions(threads=4))
        assert _files(tmp_path / "second") == wanted

    def test_same_files_on_a_remote_place(self, graph_store: Path, tmp_path: Path) -> None:
        """A URL gets the same files as a folder: written front to back, without looking back."""
        import fsspec

        self.export(graph_store, tmp_path / "local")
        out = f"memory://{tmp_path.name}-{self.target}"
        self.export(graph_store, out)
        memory = fsspec.filesystem("memory")
        root = f"/{tmp_path.name}-{self.target}/"
        found = {path.removeprefix(root): memory.cat_file(path) for path in memory.find(root)}
        assert found == _files(tmp_path / "local")

    def test_same_files_with_links(self, graph_store: Path, tmp_path: Path) -> None:
        """Hard links stand for files of the same bytes, and for no others."""
        self.export(graph_store, tmp_path / "copied")
        summary = self.export(graph_store, tmp_path / "linked", link=True)
        assert _files(tmp_path / "linked") == _files(tmp_path / "copied")
        linked = [path for path in (tmp_path / "linked").rglob("*") if path.is_file() and path.stat().st_nlink > 1]
        assert summary.num_linked == len(linked)

    def test_columns_are_not_dropped_silently(self, graph_store: Path, tmp_path: Path) -> None:
        """Without --drop-unsupported each column that is not supported is named by an error; texts are left out, and told."""
        with graphprep.open_store(str(graph_store)) as store:
            metadata = store.metadata.without_negatives()[0]
        plan = make_exporter(self.target, self.options).plan(metadata)
        skipped = {
            (side, name, column.name)
            for side, name, column in all_columns(metadata)
            if column.kind == "binary" or column.role == "created"
        }
        stopping = {_words(one) for one in plan.unsupported if (one.side, one.type, one.column) not in skipped}
        dropped = self.export(graph_store, tmp_path / "dropped").dropped
        told = {text.partition(": ")[0]: text for text in dropped}
        assert set(told) == {_words(one) for one in (*plan.left_out, *plan.unsupported)}
        if not stopping:
            assert self.export(graph_store, tmp_path / "all", drop_unsupported=False).dropped == dropped
            return
        with pytest.raises(UsageError, match="does not support") as caught:
            self.export(graph_store, tmp_path / "all", drop_unsupported=False)
        assert {words for words, text in told.items() if text in str(caught.value)} == stopping
        assert not (tmp_path / "all").exists()

    def test_says_which_layouts_it_needs(self, graph_store: Path) -> None:
        """What the class needs in words is what its plan asks for."""
        with graphprep.open_store(str(graph_store)) as store:
            plan = make_exporter(self.target, self.options).plan(store.metadata)
        needs = find_exporter(self.target).needs  # type: ignore[attr-defined]
        assert all(layout in needs for layout in plan.need.layouts)

    def test_no_column_is_lost_in_silence(self, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
        """Other values of a column make other files, or the column is named as left out."""
        graph = next(one for one in ("heterogeneous", "homogeneous") if one not in self.refuses)
        shared = _shared_store(graph, tmp_path_factory)
        dropped = self.export(shared, tmp_path / "all").dropped
        lost = []
        with graphprep.open_store(str(shared)) as store:
            columns = list(all_columns(store.metadata))
        for side, name, column in columns:
            if any(text.startswith(f"{side} column {name} {column.name!r}: ") for text in dropped):
                continue
            self.export(_shared_store(graph, tmp_path_factory, other=column.name), tmp_path / column.name)
            found, wanted = _files(tmp_path / column.name), _files(tmp_path / "all")
            records = [json.loads(files.pop("export.json")) for files in (found, wanted)]
            assert {**records[0], "files": list(records[0]["files"])} == {**records[1], "files": list(records[1]["files"])}
            lost += [f"{side} column {name} {column.name!r}"] if found == wanted else []
        assert columns
        assert not lost, f"other values change no file: {lost}"

    def test_overwrites_its_own_only(self, tmp_path: Path) -> None:
        """An earlier export is replaced if asked for, and nothing else is."""
        store, out = make_store("homogeneous", tmp_path), tmp_path / "out"
        self.export(store, out)
        wanted = _files(out)
        with pytest.raises(UsageError, match="the output exists"):
            self.export(store, out)
        self.export(store, out, overwrite=True)
        assert _files(out) == wanted
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "mine.txt").write_text("mine")
        with pytest.raises(UsageError, match="is not what graphprep exported"):
            self.export(store, tmp_path / "other", overwrite=True)
        assert (tmp_path / "other" / "mine.txt").read_text() == "mine"

    def test_leaves_nothing_where_writing_fails(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A full disk leaves no file behind."""
        from graphprep.storage.write.outputs import FileOutput

        store, real, written = make_store("homogeneous", tmp_path), FileOutput.write, [0]

        def write(self: FileOutput, data: Any) -> None:
            written[0] += 1
            if written[0] > 1:
                raise StorageError("no space left on the disk", place="out")
            real(self, data)

        monkeypatch.setattr(FileOutput, "write", write)
        with pytest.raises(StorageError, match="no space left"):
            self.export(store, tmp_path / "out")
        assert not [path.name for path in tmp_path.iterdir() if "out" in path.name]


def _words(one: Unsupported) -> str:
    """Return how a line that tells of a column begins."""
    return f"{one.side} column {one.type} {one.column!r}"


def make_store(graph: str, folder: Path, *, other: str = "") -> Path:
    """Make the store of one of ``GRAPHS`` in a folder; ``other`` names a column that has other values than without it."""
    folder.mkdir(parents=True, exist_ok=True)
    store = folder / f"{graph}-store"
    if graph == "heterogeneous":
        for name, text in _TABLES.items():
            (folder / name).write_text(_with_other_values(text, other))
        (folder / "seeds.txt").write_text("7\n" if other == "seeds" else "0\n1\n")
        graphprep.convert(str(folder / "graph.yaml"), str(store), partitions=2)
        return store
    lines = folder / f"{graph}.txt"
    lines.write_text(_with_other_values(f"src dst weight\n{_LINES[graph]}", other, " ").partition("\n")[2])
    options: dict[str, Any] = {"decoder_options": {"src_col": "0", "dst_col": "1", "weight_col": "2"}, "format": "edges"}
    if graph == "texts":
        options["decoder_options"]["id_type"] = "string"
    if graph == "several":
        options |= {"partitions": 3, "partition_by": "hash"}
    if graph == "sparse_parts":
        options |= {"partitions": 5}
    if graph == "empty":
        options["decoder_options"] = {}
    graphprep.convert([str(lines)], str(store), **options)
    return store


def _shared_store(graph: str, places: pytest.TempPathFactory, *, other: str = "") -> Path:
    """Return a store that is made once for all targets, and only to be read."""
    folder = places.getbasetemp() / "export-contract" / graph / other
    store = folder / f"{graph}-store"
    return store if store.exists() else make_store(graph, folder, other=other)


def _with_other_values(text: str, column: str, separator: str = ",") -> str:
    """Turn a column of a table upside down, if it has one of that name."""
    rows = [line.split(separator) for line in text.splitlines()]
    if rows and column in rows[0]:
        at = rows[0].index(column)
        cells = [row[at] for row in rows[:0:-1]]
        for row, cell in zip(rows[1:], cells, strict=True):
            row[at] = cell
    return "".join(f"{separator.join(row)}\n" for row in rows)


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
