"""Fixtures and paths for all tests. The reference builder is imported as ``reference``."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import re
import signal
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import devices
import pytest
from hypothesis import settings
from slow import marks

if TYPE_CHECKING:
    from remote_places import Bucket

TESTS = Path(__file__).resolve().parent
sys.path.insert(0, str(TESTS))
settings.register_profile("graphprep", deadline=None)  # an example may have to compile a kernel
settings.load_profile("graphprep")


@pytest.hookimpl(tryfirst=True)  # before -m looks at marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Note on every test which trainer's own code it runs: ``@pytest.mark.client("dgl")``; mark what slow.txt names."""
    marked = defaultdict(list)
    for name, mark in marks():
        marked[name].append(mark)
    for item in items:
        for mark in item.iter_markers("client"):
            item.user_properties.append(("client", mark.args[0]))
        for mark in marked[_name_of(item)]:
            item.add_marker(mark)
    _mark_cases(items)


def _mark_cases(items: list[pytest.Item]) -> None:
    """Where a test goes over all golden cases, mark it as heavy with all but a few, unless it is about the cases themselves."""
    from golden.golden_cases import FEW, load_cases

    others = {case.name for case in load_cases()}.difference(FEW)
    found = defaultdict(list)
    for item in items:
        words = item.callspec.id.split("-") if hasattr(item, "callspec") else ()
        if item.path.name != "test_golden.py" and others.intersection(words):
            found[_name_of(item)].append(item)
    for with_others in found.values():
        if len(with_others) >= len(others):
            for item in with_others:
                item.add_marker("heavy")


def _name_of(item: pytest.Item) -> str:
    """Return the ID of a test without its parameters and the group that xdist adds."""
    return re.split(r"[\[@]", item.nodeid)[0]


def pytest_collection_finish() -> None:
    """Let no collection of garbage look through all tests: half a second each, and what compares stores asks for hundreds."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many tests ran what trainers load with, and which device, so that none is passed over in silence."""
    titles = {
        "client": "with the trainers' own code",
        "kernels": "the contract of kernels",
        "device": "commands and functions over arrays",
    }
    found: dict[str, dict[str, Counter[str]]] = {name: {} for name in titles}
    for outcome in ("passed", "failed", "error", "skipped"):
        for report in terminalreporter.stats.get(outcome, ()):
            for name, value in getattr(report, "user_properties", ()):
                if name in found:
                    found[name].setdefault(value, Counter())[outcome] += 1
                if name.startswith("simulated "):  # how many passed in a process of their own
                    found[name.removeprefix("simulated ")].setdefault("simulated", Counter())[outcome] += int(value)
    for name, title in titles.items():
        counts = found[name]
        texts = (f"{one} {', '.join(f'{n} {outcome}' for outcome, n in counts[one].items())}" for one in sorted(counts))
        if counts:
            terminalreporter.write_line(f"{title}: {'; '.join(texts)}")


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> str:
    """What ``--device`` gets: the CPU, and a GPU, where there is one, or the simulator, where that runs."""
    if request.param == "cuda":
        request.getfixturevalue("gpu")
    return request.param


@pytest.fixture
def gpu(record_property, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """A GPU, or the simulator where that runs; a list that grows whenever something is computed there."""
    devices.check_device("cuda", "device", record_property)
    return devices.count_rooms(monkeypatch)


@pytest.fixture(autouse=True)
def warm_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no command say that kernels are compiled: only the first test of a fresh checkout would see it."""
    monkeypatch.setattr("graphprep.model.shown.compilation.announcing", lambda _: contextlib.nullcontext())


@pytest.fixture(autouse=True)
def unhurried_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let requests that failed be tried again at once."""
    monkeypatch.setattr("graphprep.storage.retries._WAITS_S", (0, 0, 0, 0))


@pytest.fixture(autouse=True)
def untimed_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let lines of the log, which tests compare, begin with no time."""
    monkeypatch.setattr("graphprep.cli.progress.log_stamp", str)


@pytest.fixture
def flags_named() -> Iterator[None]:
    """Let messages name flags, as the command line does, though the test calls from Python."""
    from graphprep.model.options.words import flags_in_messages

    with flags_in_messages():
        yield


@pytest.fixture
def hears_signals():
    """Let children hear signals that this process ignores, as under nohup or in the background of a shell."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    for number in numbers:
        if before[number] is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(scope="session")
def sample_data() -> Path:
    """The folder of sample graphs that the repository ships."""
    return TESTS.parent / "sample_data"


@pytest.fixture(scope="session")
def real_samples() -> Path:
    """The folder that GRAPHPREP_SAMPLES names; the test is skipped where it is unset or absent."""
    folder = os.environ.get("GRAPHPREP_SAMPLES", "")
    if not folder:
        pytest.skip("GRAPHPREP_SAMPLES is not set")
    if not Path(folder).is_dir():
        pytest.skip(f"GRAPHPREP_SAMPLES: no folder {folder}")
    return Path(folder)


@pytest.fixture(scope="session")
def scipy() -> ModuleType:
    """SciPy, where it is installed."""
    return pytest.importorskip("scipy", reason="SciPy is not installed")


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    """The URL of an S3 server of this test run."""
    server_module = pytest.importorskip("moto.server", reason="moto is not installed")
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # it logs every request
    server = server_module.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> None:
    """No credentials and no settings of whoever runs the tests."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    pytest.importorskip("s3fs", reason="s3fs is not installed").S3FileSystem.clear_instance_cache()


@pytest.fixture
def bucket(s3_endpoint: str, aws: None, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    """A bucket of its own, and credentials for it in the environment."""
    from remote_places import ACCESS_KEY, SECRET_KEY, Bucket

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_endpoint)
    return Bucket.make(s3_endpoint)


@pytest.fixture
def hdfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The local folder of a stub of HDFS that serves hdfs:// URLs."""
    from remote_places import StubHdfs

    root = tmp_path / "hdfs-root"
    root.mkdir()
    monkeypatch.setattr(StubHdfs, "root", root, raising=False)
    monkeypatch.setattr(StubHdfs, "fail_writes", 0)
    monkeypatch.setitem(import_module("fsspec.registry")._registry, "hdfs", StubHdfs)
    return root
