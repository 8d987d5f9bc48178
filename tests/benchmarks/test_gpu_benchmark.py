"""``make bench-gpu``: that it works, on the simulator; what it says was reached, left out, and differs."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent.parent / "benchmarks" / "gpu"
HAS_TORCH = importlib.util.find_spec("torch") is not None
KERNELS = {
    *("sort, payload of 8 B", "sort, payload of 4 B", "sort, no payload", "exclusive scan", "starts", "expand", "transpose"),
    *("order", "relabel", "dedup", "split", "degrees", "pack", "unpack", "gather", "gather at random", "count up"),
}


def load(name):
    """Return a module of the benchmark."""
    spec = importlib.util.spec_from_file_location(f"gpu_benchmark_{name}", FOLDER / f"{name}.py")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)  # dataclasses look there
    spec.loader.exec_module(module)
    return module


@pytest.mark.heavy
def test_all_of_it_runs_at_toy_sizes(tmp_path):
    """On the simulator, and says so; with stand-ins for what needs a GPU, and nothing is left out."""
    path = tmp_path / "gpu.json"
    command = [sys.executable, str(FOLDER), "--toy", "--json", str(path)]
    found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=800)
    assert found.returncode == 0, found.stderr
    assert found.stdout.startswith("SIMULATION: this shows that the script works. Its times mean nothing.\n")
    written = json.loads(path.read_text())
    assert written["about"]["simulated"]
    assert {one["verdict"] for one in written["targets"]} == {"simulated: no verdict"}
    assert [one for one in written["left_out"] if HAS_TORCH or "torch" not in one] == []
    results = [one for one in written["results"] if "skipped" not in one]
    checked = {(one["case"], one["type"], one["items"]) for one in results if one.get("result", "").startswith("checked")}
    sizes = {size for case, _, size in checked if case == "COO to CSR"}
    assert len(sizes) == 3
    rows = {f"COO to CSR{how}" for how in ("", ", ascending", ", with CUB's sort", ", cupy", ", cuda.compute (sort alone)")}
    for type_name in ("int32", "int64"):
        assert {case for case, its, _ in checked if its == type_name} >= KERNELS | rows | {"COO to CSR, streamed"}
        for size in sizes:
            assert {case for case, its, items in checked if (its, items) == (type_name, size)} >= KERNELS | rows
    shares = [one["share_of_pcie"] for one in results if one["case"] == "COO to CSR, streamed"]
    assert len(shares) == 2
    assert all(share > 0 for share in shares)
    commands = {(one["case"], one["device"]): one for one in results if "device" in one}
    for name in ("convert", "reorder"):
        assert commands[name, "cpu"]["computed_on"].startswith("cpu")
        assert commands[name, "cuda"]["computed_on"] == "cuda:0 simulator"
        assert commands[name, "cuda"]["result"].startswith("the same bytes in ")


def test_its_own_kernels_compile_without_a_gpu(monkeypatch):
    """The simulator runs what does not compile."""
    from numba import types

    monkeypatch.syspath_prepend(str(FOLDER.parent.parent / "docs"))
    from device_kernels import compile_to_ptx

    kernels = load("inputs").own_kernels()
    ints = types.int64
    for one, unsigned in ((types.int32, types.uint32), (types.int64, types.uint64)):
        ids, found = one[::1], types.int64[::1]
        for kernel, signature in (
            (kernels.draw, (ints, ints, ids)),
            (kernels.draw, (ints, ints, unsigned[::1])),
            (kernels.check, (found, ids, ids, ids, ids, types.boolean, found)),
            (kernels.check, (found, types.int32[::1], types.int32[::1], ids, ids, types.boolean, found)),
            (kernels.check_order, (ids, types.uint32[::1], found)),
        ):
            try:
                assert all(".visible .entry" in ptx for _, ptx in compile_to_ptx(kernel, signature))
            except Exception as error:
                if any(
                    part in str(error).lower() for part in ("libnvvm cannot be found", "failure finding", "missing libdevice")
                ):
                    pytest.skip(f"no libnvvm: {' '.join(str(error).split())[:200]}")
                raise


def bench_of(tmp_path, seconds=60.0):
    return load("bench").Bench(False, time.monotonic() + seconds, tmp_path / "found.json")


def test_what_was_to_be_reached(tmp_path):
    bench = bench_of(tmp_path)
    bench.note("COO to CSR", items=1, type="int32", g_items_s=4.0)
    bench.note("COO to CSR", items=2, type="int32", g_items_s=6.0)
    bench.note("COO to CSR", items=2, type="int64", g_items_s=60.0)
    bench.note("COO to CSR, with CUB's sort", items=2, type="int32", skipped="cuda.compute does not load here")
    bench.note("COO to CSR, streamed", items=2, type="int32", share_of_pcie=0.59)
    told = json.loads((tmp_path / "found.json").read_text())["targets"]
    assert [(one["wanted"], one["found"], one["verdict"], one["why"]) for one in told] == [
        (5.0, 6.0, "reached", None),
        (15.0, None, "not measured", "cuda.compute does not load here"),
        (0.6, 0.59, "missed", None),
        (2.0, None, "not measured", None),
    ]


def test_what_there_is_no_time_for_is_left_out_and_named(tmp_path, capsys):
    bench = bench_of(tmp_path, seconds=0.2)

    def measure():
        bench.median(lambda: time.sleep(0.01), lambda: None)
        return {}

    bench.run("sort", measure, items=10, type="int32")  # 0.05 s: a hundred times as many items take too long
    bench.run("sort", measure, items=1000, type="int32")
    bench.run("scan", lambda: {"ms": 1 / 0}, items=10, type="int32")
    bench.run("split", lambda: load("stores").compare_stores(FOLDER, tmp_path), items=10, type="int32")
    time.sleep(0.2)
    bench.run("gather", measure, items=10, type="int64")
    written = json.loads((tmp_path / "found.json").read_text())
    assert written["left_out"] == ["sort 1000 int32", "scan 10 int32", "gather 10 int64"]
    assert "wrong" in written["results"][3]
    assert [one.get("skipped") for one in written["results"]] == [
        None,
        "left out: 0 s are left",
        "division by zero",
        None,
        "left out: 0 s are left",
    ]


def test_stores_that_differ_are_told_of(tmp_path):
    compare = load("stores").compare_stores
    for name in ("cpu", "cuda"):
        (tmp_path / name / "part").mkdir(parents=True)
        (tmp_path / name / "provenance.json").write_text(name)
        (tmp_path / name / "part" / "a.npy").write_text("same")
        (tmp_path / name / "part" / "b.npy").write_text("same")
    assert compare(tmp_path / "cpu", tmp_path / "cuda") == 2
    (tmp_path / "cuda" / "part" / "b.npy").write_text("else")
    (tmp_path / "cuda" / "part" / "c.npy").write_text("more")
    with pytest.raises(AssertionError, match=r"^part/b.npy, part/c.npy differ$"):
        compare(tmp_path / "cpu", tmp_path / "cuda")
