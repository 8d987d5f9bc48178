"""What a run takes of the disk: never more is promised than it takes, and too small a disk is told at once."""

import gzip
import json
import os

import fsspec
import numpy as np
import pytest
from golden.golden_cases import GOLDEN, SAMPLE_DATA

import graphprep
from graphprep.cli.main import run
from graphprep.convert import disk_need
from graphprep.convert.disk_need import DiskRules, check_disk, estimate_disk
from graphprep.convert.pipeline import convert
from graphprep.convert.read.plan import plan_input
from graphprep.engine.budget import format_size
from graphprep.model.errors import StorageError
from graphprep.model.options.convert import ConvertOptions
from graphprep.model.protocols import QuietReporter
from graphprep.model.run_options import RunOptions
from graphprep.storage.read.urls import Storage
from graphprep.storage.spill.journal import KeptFolder
from graphprep.store.room import DiskNeed

MIB = 1 << 20


class Told(QuietReporter):
    details = True

    def __init__(self):
        self.messages = []

    def message(self, text):
        self.messages.append(text)


def rules(tmp_path, **given):
    values = {"out": str(tmp_path / "out"), "tmp_dir": str(tmp_path), "pool_bytes": 0, "num_layouts": 1, "edge_ids": True}
    return DiskRules(**{**values, "may_drop_edges": False, **given})


def plan(path, **given):
    with Storage() as storage:
        return plan_input([str(path)], ConvertOptions(**given), storage, QuietReporter())


def estimate(path, disk, **given):
    with Storage() as storage:
        planned = plan_input([str(path)], ConvertOptions(**given), storage, QuietReporter())
        return estimate_disk(planned, storage, disk)


def write_edges(path, num_edges, width=6):
    rng = np.random.default_rng(num_edges)
    rows = rng.integers(10 ** (width - 1), 10**width, (num_edges, 2)).tolist()
    path.write_text("".join(f"{a} {b}\n" for a, b in rows))
    return path


def test_plain_edges(tmp_path):
    path = write_edges(tmp_path / "edges.txt", 100_000)
    assert estimate(path, rules(tmp_path), format="edges") == DiskNeed(100_000 * 5 // 2, 100_000 * 8 // 2)
    both = rules(tmp_path, num_layouts=2, edge_ids=False, pool_bytes=50_000)
    assert estimate(path, both, format="edges") == DiskNeed(100_000 * 5 // 2 - 50_000, 100_000 * 8 // 2)
    dropping = rules(tmp_path, may_drop_edges=True, pool_bytes=10**9)
    assert estimate(path, dropping, format="edges") == DiskNeed(0, 0)


def test_the_poorest_piece_counts(tmp_path):
    """A file of long comments with edges at its beginning promises nothing."""
    path = write_edges(tmp_path / "edges.txt", 20_000)
    with path.open("a") as file:
        file.write(("# " + "x" * 200 + "\n") * 20_000)
    assert estimate(path, rules(tmp_path), format="edges") == DiskNeed(0, 0)


def test_lines_longer_than_a_sample_promise_nothing(tmp_path):
    path = tmp_path / "edges.txt"
    path.write_text("# " + "x" * 100_000 + "\n1 2\n")
    assert estimate(path, rules(tmp_path), format="edges") == DiskNeed(0, 0)


def test_faults_are_left_to_those_who_decode(tmp_path):
    path = tmp_path / "edges.txt"
    path.write_text("1 2\n" * 10 + "1 x\n")
    assert estimate(path, rules(tmp_path), format="edges") == DiskNeed(0, 0)


def test_of_many_files_some_are_looked_into(tmp_path, monkeypatch):
    (tmp_path / "many").mkdir()
    for number in range(40):
        write_edges(tmp_path / f"many/{number:02}.txt", 1_000)
    looked = []
    real = disk_need._sample
    monkeypatch.setattr(disk_need, "_sample", lambda *args: looked.append(args) or real(*args))
    assert estimate(tmp_path / "many", rules(tmp_path), format="edges") == DiskNeed(40_000 * 5 // 2, 40_000 * 8 // 2)
    assert len(looked) == 8


@pytest.mark.parametrize("case", sorted(path.parent.name for path in GOLDEN.glob("*/case.json")))
def test_no_more_is_promised_than_a_store_takes(case, tmp_path):
    """Of every golden case. An estimate is for the arrays; the stores have headers and metadata besides."""
    told = json.loads((GOLDEN / case / "case.json").read_text())
    if "graph" in told["options"]:
        pytest.skip("tables are named in Python")
    options = ConvertOptions(**told["options"])
    inputs = [str(SAMPLE_DATA / one) for one in told["inputs"]]
    layouts = 2 if options.layout == "both" else 1
    disk = rules(tmp_path, num_layouts=layouts, edge_ids=options.edge_ids, may_drop_edges=options.on_missing_node == "drop")
    with Storage() as storage:
        try:
            planned = plan_input(inputs, options, storage, QuietReporter())
        except Exception:
            pytest.skip("a case of what cannot be planned")
        need = estimate_disk(planned, storage, disk)
    store = GOLDEN / case / "store"
    taken = sum(path.stat().st_size - 128 for path in store.rglob("*.npy")) if store.exists() else 0
    assert need.output_bytes <= taken


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (lambda path: write_edges(path, 300_000), {"format": "edges", "layout": "both"}),
        (lambda path: write_features(path, 20_000), {"format": "edgelist"}),
        (lambda path: path.write_bytes(gzip.compress(write_edges(path, 300_000).read_bytes(), 1)), {"format": "edges"}),
    ],
    ids=["edges", "features", "gz"],
)
def test_no_more_is_promised_than_a_run_takes(make, options, tmp_path):
    path = tmp_path / "in"
    make(path)
    told = Told()
    done = convert([str(path)], str(tmp_path / "out"), ConvertOptions(**options), told)
    disk = rules(tmp_path, num_layouts=2 if options.get("layout") == "both" else 1)
    need = estimate(path, disk, **options)
    assert 0 < need.output_bytes < done.output_bytes
    assert any(text.startswith("disk: the store takes at least ") for text in told.messages)


def write_features(path, num_nodes):
    values = ",".join(f"{x:.4f}" for x in np.random.default_rng(2).random(50)).encode()
    path.write_bytes(b"".join(b"%d,-1,0,1,float32,50,%s\n%d,0,%d,1.5\n" % (n, values, n, n // 2) for n in range(num_nodes)))


# ---- too little


@pytest.fixture
def free(monkeypatch):
    """Say how much is free, by folder."""
    sizes = {}

    def statvfs(folder):
        size = sizes.get(str(folder), 1 << 50)
        if size is None:
            raise OSError(38, "Function not implemented")
        return os.statvfs_result((4096, 4096, 1 << 40, 1 << 40, size // 4096, 0, 0, 0, 0, 255))

    monkeypatch.setattr(os, "statvfs", statvfs)
    return sizes


def test_a_disk_that_is_too_small_for_the_store(tmp_path, free):
    path = write_edges(tmp_path / "edges.txt", 100_000)
    planned = plan(path, format="edges")
    free[str(tmp_path)] = 98 * 4096
    with Storage() as storage:
        check_disk(planned, storage, rules(tmp_path, pool_bytes=10**9), QuietReporter())
        free[str(tmp_path)] = 390_000
        with pytest.raises(StorageError) as caught:
            check_disk(planned, storage, rules(tmp_path, out=str(tmp_path / "a/b/out"), pool_bytes=10**9), QuietReporter())
    assert str(caught.value) == (
        f"{tmp_path}: the store takes at least 390.6 KiB, and 380.0 KiB are free\n"
        "  fix: free some space, or choose another disk"
    )
    assert caught.value.exit_code == 3


def test_a_disk_that_is_too_small_for_temporary_files(tmp_path, free):
    path = write_edges(tmp_path / "edges.txt", 100_000)
    planned = plan(path, format="edges")
    (tmp_path / "tmp").mkdir()
    free[str(tmp_path / "tmp")] = 200_000
    tight = rules(tmp_path, tmp_dir=str(tmp_path / "tmp"))
    with Storage() as storage:
        with pytest.raises(StorageError) as caught:
            check_disk(planned, storage, tight, QuietReporter())
        check_disk(planned, storage, rules(tmp_path, tmp_dir=str(tmp_path / "tmp"), pool_bytes=60_000), QuietReporter())
    assert str(caught.value) == (
        f"{tmp_path}/tmp: under this memory limit temporary files take at least 244.1 KiB, and 192.0 KiB are free\n"
        "  fix: free some space, or choose another disk with --tmp-dir, or raise --memory-limit"
    )


@pytest.fixture
def elsewhere():
    """Return a URL whose files do not lie on a disk."""
    memory = fsspec.filesystem("memory")
    yield "memory://disk-need/out"
    if memory.exists("/disk-need"):
        memory.rm("/disk-need", recursive=True)


def test_what_goes_on_keeps_all_rows_and_beside_a_remote_store_a_copy(tmp_path, elsewhere, monkeypatch):
    """Held against the folder as it is when the store is whole."""
    path = write_edges(tmp_path / "edges.txt", 100_000)
    (tmp_path / "tmp").mkdir()
    taken = []
    real = KeptFolder.finish
    monkeypatch.setattr(
        KeptFolder, "finish", lambda one: taken.append(sum(file.stat().st_size for file in one.path.iterdir())) or real(one)
    )
    for out, need in ((elsewhere, 650_000), (str(tmp_path / "tmp/out"), 250_000)):
        told = Told()
        options = ConvertOptions(resume=True, run=RunOptions("1GiB", tmp_dir=str(tmp_path / "tmp")))
        convert([str(path)], out, options, told)
        words = f"disk: what --resume keeps and other temporary files take at least {format_size(need)} in {tmp_path}/tmp, "
        assert [text.startswith(words) for text in told.messages].count(True) == 1, told.messages
        assert need <= taken.pop()


def test_a_disk_that_is_too_small_for_what_is_kept(tmp_path, free, elsewhere):
    path = write_edges(tmp_path / "edges.txt", 100_000)
    (tmp_path / "tmp").mkdir()
    free[str(tmp_path / "tmp")] = 600_000
    run_options = RunOptions("1GiB", tmp_dir=str(tmp_path / "tmp"))
    with pytest.raises(StorageError) as caught:
        convert([str(path)], elsewhere, ConvertOptions(resume=True, run=run_options))
    assert str(caught.value) == (
        f"{tmp_path}/tmp: what --resume keeps and other temporary files take at least 634.8 KiB, and 584.0 KiB are free\n"
        "  fix: free some space, or choose another disk with --tmp-dir, or drop --resume"
    )
    assert list((tmp_path / "tmp").iterdir()) == []
    convert([str(path)], elsewhere, ConvertOptions(run=run_options))
    convert([str(path)], str(tmp_path / "tmp/out"), ConvertOptions(resume=True, run=run_options))  # by another name


def test_operations_need_room_for_a_store_beside_out(tmp_path, free):
    path = write_edges(tmp_path / "edges.txt", 100_000)
    (tmp_path / "tmp").mkdir()
    free[str(tmp_path / "tmp")] = 300_000
    with pytest.raises(graphprep.GraphprepError) as caught:
        graphprep.convert(path, tmp_path / "out", undirected=True, tmp_dir=tmp_path / "tmp", memory_limit="1GiB")
    assert caught.value.message == ("under this memory limit temporary files take at least 390.6 KiB, and 292.0 KiB are free")
    graphprep.convert(path, tmp_path / "out", tmp_dir=tmp_path / "tmp", memory_limit="1GiB")


def test_what_is_told_to_who_wants_details(tmp_path, free):
    path = write_edges(tmp_path / "edges.txt", 100_000)
    planned = plan(path, format="edges")
    told = Told()
    with Storage() as storage:
        check_disk(planned, storage, rules(tmp_path), told)
        check_disk(planned, storage, rules(tmp_path, out="s3://bucket/out", pool_bytes=10**9), told)
    assert told.messages == [
        f"disk: the store takes at least 390.6 KiB in {tmp_path}, 1.0 PiB are free",
        f"disk: under this memory limit temporary files take at least 244.1 KiB in {tmp_path}, 1.0 PiB are free",
    ]


def test_nobody_looks_where_there_is_plenty(tmp_path, free, monkeypatch):
    path = write_edges(tmp_path / "edges.txt", 1_000)
    options = ConvertOptions(format="edges", overwrite=True)
    monkeypatch.setattr(disk_need, "estimate_disk", lambda *_: 1 / 0)
    convert([str(path)], str(tmp_path / "out"), options, QuietReporter())
    free[str(tmp_path)] = None  # the system does not say
    convert([str(path)], str(tmp_path / "out"), options, Told())
    free[str(tmp_path)] = 16 * path.stat().st_size - 4096
    with pytest.raises(ZeroDivisionError):
        convert([str(path)], str(tmp_path / "out"), options, QuietReporter())


def test_the_command_line(tmp_path, free, capsys):
    path = write_edges(tmp_path / "edges.txt", 100_000)
    free[str(tmp_path)] = 390_000
    assert run(["convert", str(path), str(tmp_path / "out")]) == 3
    assert f"error: {tmp_path}: the store takes at least 390.6 KiB, and 380.0 KiB are free\n" in capsys.readouterr().err
    assert [one.name for one in tmp_path.iterdir()] == ["edges.txt"]
    free.clear()
    assert run(["convert", str(path), str(tmp_path / "out"), "-v"]) == 0
    err = capsys.readouterr().err
    assert f"disk: the store takes at least 390.6 KiB in {tmp_path}, 1.0 PiB are free\n" in err
