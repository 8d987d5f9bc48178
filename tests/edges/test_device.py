"""Which device computes, what is said of it, and what happens when it fails: with a device that is none."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from fake_device import FREE, REASON, FakeDevice
from golden.golden_cases import load_cases, read_store

import graphprep
from graphprep.cli.main import run
from graphprep.edges.device import find
from graphprep.edges.device.find import read_device
from graphprep.engine.budget import parse_device_memory
from graphprep.engine.ledger import Ledger, Need
from graphprep.model.errors import DeviceError, UsageError

pytestmark = pytest.mark.usefixtures("flags_named")
CASES = {case.name: case for case in load_cases()}
SHOP = CASES["shop_json"].input_paths


class Listener:
    """Keeps what it is told."""

    def __init__(self, *, details=False):
        self.details = details
        self.messages = []

    def stage(self, name, *, total_bytes=None, total_records=None):
        pass

    def advance(self, *, records=0, num_bytes=0):
        pass

    def message(self, text):
        self.messages.append(text)


@pytest.fixture
def devices(monkeypatch):
    """Let there be a device: returns a function that says in which call it fails, and returns it."""
    monkeypatch.delenv(find.DEVICE_VARIABLE, raising=False)
    monkeypatch.setenv(find.LEAST_VARIABLE, "0")

    def put(fail_at=None):
        device = FakeDevice(fail_at)
        monkeypatch.setattr(find, "look", lambda choice: device)
        find._open.cache_clear()
        return device

    yield put
    find._open.cache_clear()


@pytest.fixture
def no_device(monkeypatch):
    """Let there be none."""

    def look(choice):
        raise UsageError("no driver", place=choice.place, fix="install one")

    monkeypatch.setattr(find, "look", look)
    monkeypatch.delenv(find.DEVICE_VARIABLE, raising=False)
    monkeypatch.delenv(find.LEAST_VARIABLE, raising=False)


# ---- what a user asks for


@pytest.mark.parametrize(
    ("given", "variable", "wanted"),
    [
        (None, "", ("auto", 0, "GRAPHPREP_DEVICE=auto")),
        (None, "cuda:3", ("cuda", 3, "GRAPHPREP_DEVICE=cuda:3")),
        ("auto", "cuda", ("auto", 0, "--device auto")),
        ("cpu", "cuda", ("cpu", 0, "--device cpu")),
        ("cuda", "cpu", ("cuda", 0, "--device cuda")),
        ("cuda:12", "", ("cuda", 12, "--device cuda:12")),
    ],
)
def test_words_for_devices(given, variable, wanted, monkeypatch):
    monkeypatch.setenv("GRAPHPREP_DEVICE", variable)
    choice = read_device(given)
    assert (choice.kind, choice.index, choice.place) == wanted


@pytest.mark.parametrize("word", ["", "gpu", "CPU", "cuda:", "cuda:-1", "cuda:x", "cuda:12345", " cuda", "cuda:1\n"])
def test_other_words_are_refused(word, monkeypatch):
    fix = "use auto, cpu, cuda or cuda:N, such as cuda:1"
    with pytest.raises(UsageError) as caught:
        read_device(word)
    assert (caught.value.message, caught.value.place, caught.value.fix) == ("there is no such device", f"--device {word}", fix)
    if word:
        monkeypatch.setenv("GRAPHPREP_DEVICE", word)
        with pytest.raises(UsageError) as caught:
            read_device(None)
        assert caught.value.place == f"GRAPHPREP_DEVICE={word}"


@pytest.mark.parametrize("command", ["convert", "reorder", "export"])
@pytest.mark.parametrize(
    ("flag", "value", "message"),
    [
        ("--device", "tpu", "--device tpu: there is no such device\n  fix: use auto, cpu, cuda or cuda:N, such as cuda:1\n"),
        (
            "--device-memory-limit",
            "much",
            "--device-memory-limit: 'much' is not an amount of memory\n"
            "  fix: write a size (8GiB, 512MiB), a share (50%) or auto\n",
        ),
    ],
)
def test_every_command_refuses_them(command, flag, value, message, tmp_path, capsys):
    given = {"reorder": ["--by", "degree"], "export": ["--to", "npy"]}.get(command, [])
    assert run([command, str(CASES["karate_csv"].store), str(tmp_path / "out"), *given, flag, value]) == 2
    assert capsys.readouterr().err == f"error: {message}"
    assert not (tmp_path / "out").exists()


def test_a_least_number_of_edges_that_is_none(monkeypatch, tmp_path):
    monkeypatch.setenv("GRAPHPREP_DEVICE_MIN_EDGES", "1e6")
    with pytest.raises(UsageError) as caught:
        graphprep.reorder(CASES["karate_csv"].store, tmp_path / "out", by="degree")
    assert str(caught.value) == (
        "GRAPHPREP_DEVICE_MIN_EDGES=1e6: expected a number of edges\n  fix: write it in digits, or unset it"
    )


def test_shares_of_a_device():
    assert parse_device_memory("auto", 1000) == 800
    assert parse_device_memory("50%", 1000) == 500
    assert parse_device_memory("1KiB", 4000) == 1024
    assert parse_device_memory("1KiB", 1000) == 1000


# ---- which one is taken, and what is said


def converted(out, listener=None, **given):
    return graphprep.convert(SHOP, out, reporter=listener, overwrite=True, **given)


def test_auto_takes_a_device_from_a_number_of_edges_on(devices, tmp_path, monkeypatch):
    listener, device = Listener(details=True), devices()
    num_edges = sum(converted(tmp_path / "gpu", listener).num_edges.values())
    assert f"device: cuda:0 Fake 3000: {num_edges} edges" in listener.messages
    assert device.num_calls
    assert json.loads((tmp_path / "gpu/provenance.json").read_text())["device"] == "cuda:0 Fake 3000"

    listener, device = Listener(details=True), devices()
    monkeypatch.setenv("GRAPHPREP_DEVICE_MIN_EDGES", str(num_edges + 1))
    converted(tmp_path / "cpu", listener)
    assert f"device: cpu: {num_edges} edges, and a GPU is looked for from {num_edges + 1} on" in listener.messages
    assert not device.num_calls
    assert json.loads((tmp_path / "cpu/provenance.json").read_text())["device"].startswith("cpu (")
    assert read_store(tmp_path / "cpu") == read_store(tmp_path / "gpu")


def test_auto_without_a_device_says_why(no_device, tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHPREP_DEVICE_MIN_EDGES", "1")
    listener = Listener(details=True)
    converted(tmp_path / "out", listener)
    assert "device: cpu: no driver" in listener.messages
    listener = Listener()
    converted(tmp_path / "out", listener)
    assert not [text for text in listener.messages if "device" in text]


@pytest.mark.parametrize("command", ["convert", "reorder", "export"])
def test_a_device_by_name_must_be_there(command, no_device, tmp_path, capsys):
    given = {"reorder": ["--by", "degree"], "export": ["--to", "npy"]}.get(command, [])
    source = CASES["shop_json"].store if given else SHOP[0]
    assert run([command, str(source), str(tmp_path / "out"), *given, "--device", "cuda:1"]) == 2
    assert capsys.readouterr().err == "error: --device cuda:1: no driver\n  fix: install one\n"
    assert not (tmp_path / "out").exists()


def test_cpu_looks_for_nothing(no_device, tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHPREP_DEVICE_MIN_EDGES", "0")
    listener = Listener(details=True)
    converted(tmp_path / "out", listener, device="cpu")
    assert not [text for text in listener.messages if "device" in text]


def test_memory_of_a_device_is_entered(devices, tmp_path):
    listener, device = Listener(details=True), devices()
    converted(tmp_path / "out", listener, device="cuda", device_memory_limit="25%", memory_limit="1GiB")
    ((device_bytes, pinned_bytes),) = device.given
    assert device_bytes == FREE // 4
    assert 0 < pinned_bytes < (1 << 30) // 10
    (told,) = (text for text in listener.messages if text.startswith("memory: on the device"))
    size = f"{pinned_bytes / (1 << 20):.1f} MiB"
    wanted = f"slots 2.5 GiB (three of them); all stages from now on: pinned {size} (on their way)"
    assert told == f"memory: on the device: {wanted}"


def test_what_is_pinned_counts_in_every_later_stage():
    class Sampler:
        def lap(self):
            return 0

    ledger = Ledger(1 << 40, 0, Listener(), Sampler())
    ledger.begin("first", [])
    before = ledger.peak_bytes("first") - ledger.own_bytes("first")
    ledger.take_device(Need("slots", 1 << 30, ""), Need("pinned", 1 << 20, ""))
    ledger.begin("second", [])
    assert ledger.peak_bytes("second") - ledger.own_bytes("second") == before + (1 << 20)
    assert ledger.device == Need("slots", 1 << 30, "")


def test_what_a_device_did_is_told_at_the_end_of_a_stage():
    class Sampler:
        def lap(self):
            return 0

    listener, done = Listener(details=True), ["7 x sort_rows", ""]
    ledger = Ledger(1 << 40, 0, listener, Sampler())
    ledger.begin("first", [])
    ledger.take_device(Need("slots", 1, ""), Need("pinned", 1, ""), lambda: done.pop(0))
    ledger.begin("second", [])
    ledger.end()
    assert [text for text in listener.messages if text.startswith("device")] == ["device: first: 7 x sort_rows"]
    assert not done


# ---- a device that fails


def convert_shop(out, **given):
    graphprep.convert(SHOP, out, partitions=2, layout="both", neighbor_order="id", **given)


def reorder_town(out, **given):
    graphprep.reorder(CASES["town_json"].store, out, by="degree", **given)


def export_shop(out, **given):
    graphprep.export(CASES["shop_json_random"].store, out, "glt", partitions=2, drop_unsupported=True, **given)


def partition_karate(out, **given):
    graphprep.partition(CASES["karate_csv"].store, out, partitions=2, by="hash", **given)


def transform_town(out, **given):
    graphprep.transform(CASES["town_json"].store, out, "layout csr", **given)


RUNS = {
    "convert": convert_shop,
    "reorder": reorder_town,
    "export": export_shop,
    "partition": partition_karate,
    "transform": transform_town,
}


@pytest.mark.parametrize(
    ("name", "threads"),
    [
        *(pytest.param(name, 2, marks=pytest.mark.heavy) for name in ("convert", "export")),
        *((name, 2) for name in ("reorder", "partition", "transform")),
        ("reorder", 1),
        ("transform", 1),
    ],
)
def test_a_failure_in_any_call_changes_no_byte(name, threads, devices, tmp_path):
    make = RUNS[name]
    make(tmp_path / "cpu", device="cpu", threads=threads)
    wanted, device = read_store(tmp_path / "cpu"), devices()
    make(tmp_path / "gpu", device="cuda", threads=threads)
    assert read_store(tmp_path / "gpu") == wanted
    assert device.num_calls > 3
    for call in range(device.num_calls):
        listener, failing = Listener(), devices(call)
        out = tmp_path / f"auto-{call}"
        make(out, device="auto", threads=threads, reporter=listener)
        assert read_store(out) == wanted, call
        told = [text for text in listener.messages if "failed" in text]
        assert told == [f"cuda:0 Fake 3000 failed: {REASON}; the CPU does the rest"]
        assert failing.num_calls <= call + threads
        if (out / "provenance.json").exists():
            said = json.loads((out / "provenance.json").read_text())["device"]
            assert said == "cuda:0 Fake 3000, until it failed, then cpu"
        devices(call)
        with pytest.raises(DeviceError) as caught:
            make(tmp_path / "none", device="cuda", threads=threads)
        assert str(caught.value) == (
            f"--device cuda: {REASON}\n  fix: use --device auto, which goes on on the CPU, or --device cpu"
        )
        assert caught.value.exit_code == 3
        assert not (tmp_path / "none").exists()


# ---- functions over arrays

EDGES = ""  # a file, once there is one
SRC, DST = np.array([0, 5, 2, 2, 0, 3, 5, 2], np.int64), np.array([1, 0, 4, 4, 1, 2, 3, 0], np.int64)
CSR = graphprep.build_adjacency(SRC, DST, layout="csr")
FUNCTIONS = {
    "build": lambda **given: graphprep.build_adjacency(SRC, DST, sort_neighbors=True, **given),
    "transpose": lambda **given: graphprep.transpose(CSR, **given),
    "degrees": lambda **given: graphprep.degrees(SRC, DST, **given),
    "reorder": lambda **given: graphprep.reorder_by_degree(CSR, sort_neighbors=True, **given),
    "sort_keys": lambda **given: graphprep.sort_keys(SRC - 3, **given),
    "sort_edges": lambda **given: graphprep.sort_edges(SRC, DST, **given),
    "sort_wide": lambda **given: graphprep.sort_edges(SRC << 50, DST << 50, **given),
    "dedup": lambda **given: graphprep.dedup_edges(SRC, DST, **given),
    "rank": lambda **given: graphprep.rank_ids(DST << 40, **given),
    "read": lambda **given: graphprep.read_adjacency(EDGES, skip_lines=1, **given),
    "scatter": lambda **given: graphprep.read_adjacency(EDGES, edge_ids=False, skip_lines=1, **given),
}


def arrays_of(result):
    """Return the arrays of a result, with their dtypes."""
    parts = []
    for one in result if isinstance(result, tuple) else (result,):
        held = (one.indptr, one.indices, one.edge_ids) if isinstance(one, graphprep.Adjacency) else (one,)
        parts += [(array.dtype.name, array.tolist()) for array in held if array is not None]
    return parts


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_over_arrays_on_a_device(name, devices, tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "EDGES", tmp_path / "edges.txt")
    (tmp_path / "edges.txt").write_text("a b\n" + "".join(f"{src} {dst}\n" for src, dst in zip(SRC, DST, strict=True)))
    call = FUNCTIONS[name]
    wanted, device = arrays_of(call()), devices()
    assert arrays_of(call(device="cpu")) == wanted
    assert device.num_calls == 0
    assert arrays_of(call(device="cuda:0")) == wanted
    assert device.num_calls > 0
    for number in range(device.num_calls):
        devices(number)
        with pytest.raises(DeviceError) as caught:
            call(device="cuda")
        assert str(caught.value) == f'device="cuda": {REASON}\n  fix: leave device out, or pass device="cpu"'


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("word", ["auto", "gpu", ""])
def test_functions_over_arrays_refuse_other_words(name, word, tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "EDGES", tmp_path / "edges.txt")
    (tmp_path / "edges.txt").write_text("a b\n0 1\n")
    with pytest.raises(UsageError) as caught:
        FUNCTIONS[name](device=word)
    assert str(caught.value) == f'device="{word}": there is no such device\n  fix: use cpu, cuda or cuda:N, such as cuda:1'


# ---- what is not imported


@pytest.mark.parametrize(
    "command",
    [
        ["--help"],
        ["convert", "--help-all"],
        ["convert", str(SHOP[0]), "OUT"],
        ["convert", str(SHOP[0]), "OUT", "--device", "cpu"],
        ["reorder", str(CASES["karate_csv"].store), "OUT", "--by", "degree"],
        ["export", str(CASES["karate_csv"].store), "OUT", "--to", "npy"],
    ],
    ids=lambda command: " ".join(command[:1] + command[3:]),
)
def test_a_run_on_the_cpu_imports_nothing_of_cuda(command, tmp_path):
    code = (
        "import sys\n"
        "from graphprep.cli.main import run\n"
        "code = run(sys.argv[1:])\n"
        "found = [name for name in sys.modules if 'cuda' in name]\n"
        "sys.exit(str(found) if found else code)\n"
    )
    given = [str(tmp_path / "out") if one == "OUT" else one for one in command]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GRAPHPREP_DEVICE")}
    done = subprocess.run([sys.executable, "-c", code, *given], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
