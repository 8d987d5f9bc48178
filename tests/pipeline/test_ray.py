"""Workers of Ray that decode: a cluster with a token, the golden bytes, also where one is killed; what does not fit is refused."""

from __future__ import annotations

import importlib
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from golden.golden_cases import load_cases, read_store
from services.servers import free_ports

import graphprep
from graphprep.engine import cluster as clusters
from graphprep.engine.ray_cluster import RayCluster
from graphprep.model.errors import DataError, StorageError, UsageError

NAMES = ("karate_csv", "lesmis_json", "people_tables", "peers_arrays_columns")
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("ray")]  # together: a cluster takes seconds to begin


@pytest.fixture(scope="module")
def ray():
    """The package, in an environment without a cluster and with a token, so that nobody else can send tasks."""
    with pytest.MonkeyPatch.context() as environment:
        environment.delenv("RAY_ADDRESS", raising=False)
        environment.setenv("RAY_USAGE_STATS_ENABLED", "0")
        environment.setenv("RAY_AUTH_MODE", "token")
        environment.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
        yield pytest.importorskip("ray")


@pytest.fixture(scope="module")
def ports(ray):
    """The ports of the head, and for clients, of a cluster with two workers."""
    if " " in sys.executable:
        pytest.skip(f"Ray starts no workers with a Python whose path has a blank: {sys.executable}")
    head, clients = free_ports(2)
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", "--num-cpus=2", f"--port={head}"]
    command += [f"--ray-client-server-port={clients}", "--include-dashboard=false", "--object-store-memory=80000000"]
    with (
        tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder,
        subprocess.Popen([*command, f"--temp-dir={folder}"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process,
    ):
        try:
            for line in process.stdout:
                if b"Ray runtime started" in line:
                    break
            yield head, clients
        finally:
            process.terminate()
            process.communicate()


@pytest.fixture(scope="module")
def connected(ray, ports):
    """Connect this process, once for all tests: each connection has workers of its own, which take a second to start."""
    at_sigterm = signal.getsignal(signal.SIGTERM)
    with ray.init(f"127.0.0.1:{ports[0]}", log_to_driver=False):
        signal.signal(signal.SIGTERM, at_sigterm)
        yield


@pytest.fixture
def lines(tmp_path):
    file = tmp_path / "edges.csv"
    file.write_text("".join(f"{row},{row * 7 % 300}\n" for row in range(400)))
    return str(file)


@pytest.mark.parametrize("case", [one for one in load_cases() if one.name in NAMES], ids=lambda case: case.name)
def test_ray_writes_the_golden_bytes(case, connected, tmp_path):
    options = case.resolved_options() | {"block_bytes": 16}
    graphprep.convert([str(path) for path in case.input_paths], tmp_path / "store", engine="ray", **options)
    assert read_store(tmp_path / "store") == read_store(case.store)
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


def test_only_names_sizes_and_checksums_come_back(connected, lines, tmp_path, monkeypatch):
    found, run = [], RayCluster.run

    def watched(self, task):
        found.append(run(self, task))
        return found[-1]

    monkeypatch.setattr(RayCluster, "run", watched)
    graphprep.convert(lines, tmp_path / "out", engine="ray", block_bytes=16)
    assert len(found) >= 4
    assert {tuple(map(type, one)) for one in found} == {(str, int, str)}


def killed_where(monkeypatch, is_killed):
    """Let workers kill themselves where a block is to be written that they have decoded, if ``is_killed`` says so there."""
    run = RayCluster.run

    def killing(self, task):
        def decode_and_die():
            from graphprep.convert.read import apart

            pack = apart.pack

            def pack_or_die(found):
                if is_killed():
                    os.kill(os.getpid(), signal.SIGKILL)
                return pack(found)

            with pytest.MonkeyPatch.context() as patches:
                patches.setattr(apart, "pack", pack_or_die)
                return task()

        return run(self, decode_and_die)

    monkeypatch.setattr(RayCluster, "run", killing)


def test_a_worker_killed_while_it_decodes_changes_nothing(connected, lines, tmp_path, monkeypatch):
    marker = tmp_path / "killed"

    def once():
        try:
            marker.touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    killed_where(monkeypatch, once)
    graphprep.convert(lines, tmp_path / "ray", engine="ray", block_bytes=16)
    assert marker.exists()
    graphprep.convert(lines, tmp_path / "whole")
    assert read_store(tmp_path / "ray") == read_store(tmp_path / "whole")


def test_a_task_that_kills_each_worker_ends_the_run(connected, lines, tmp_path, monkeypatch):
    killed_where(monkeypatch, lambda: True)
    with pytest.raises(StorageError) as caught:
        graphprep.convert(lines, tmp_path / "out", engine="ray")
    assert str(caught.value) == ("4 workers of Ray were lost at one task\n  fix: look into their logs: memory may have run out")
    assert [path.name for path in tmp_path.iterdir()] == ["edges.csv"]


def test_faults_have_their_place_and_leave_nothing(connected, lines, tmp_path):
    with Path(lines).open("a") as file:
        file.write("7,x\n")
    with pytest.raises(DataError) as caught:
        graphprep.convert(lines, tmp_path / "out", engine="ray", block_bytes=16)
    assert str(caught.value).startswith(f"{lines}:401:3: field 'dst' must be an integer, found 'x'")
    assert [path.name for path in tmp_path.iterdir()] == ["edges.csv"]


def test_other_versions_are_refused(connected, lines, tmp_path, monkeypatch):
    version = clusters.__version__
    monkeypatch.setattr(clusters, "__version__", "9.9")
    with pytest.raises(UsageError, match=rf"worker \S+ of Ray has graphprep {version}, and 9\.9 is here"):
        graphprep.convert(lines, tmp_path / "out", engine="ray")


class NotThere:
    """A task with a module that workers lack."""

    def __call__(self):
        return {}

    def __reduce__(self):
        return importlib.import_module, ("not_there",)


def test_what_workers_lack_is_told(connected, lines, tmp_path, monkeypatch):
    with monkeypatch.context() as patches:
        patches.setattr(clusters, "versions", NotThere())
        with pytest.raises(UsageError, match="graphprep is not installed on workers of Ray"):
            graphprep.convert(lines, tmp_path / "out", engine="ray")
    run = RayCluster.run
    monkeypatch.setattr(RayCluster, "run", lambda self, task: run(self, NotThere()))
    with pytest.raises(StorageError, match="a worker of Ray says: System error: No module named 'not_there'"):
        graphprep.convert(lines, tmp_path / "out", engine="ray")


def test_a_folder_that_workers_do_not_see_is_told(connected, lines, tmp_path, monkeypatch):
    run = RayCluster._run_on_each
    monkeypatch.setattr(RayCluster, "_run_on_each", lambda self, task: run(self, task if task is clusters.versions else bool))
    with pytest.raises(UsageError, match=r"worker \S+ does not see this folder"):
        graphprep.convert(lines, tmp_path / "out", engine="ray")
    assert [path.name for path in tmp_path.iterdir()] == ["edges.csv"]


DYING = """
import os, pathlib, signal

class DyingDecoder:
    def decode(self, line):
        src, dst = map(int, line.split(","))
        if src == 200:
            try:
                pathlib.Path(__file__).with_name("killed").touch(exist_ok=False)
                os.kill(os.getpid(), signal.SIGKILL)
            except FileExistsError:
                pass
        yield src, -1, 0, 1.0, 0, -1, []
        yield src, dst, 0, 1.0, 0, -1, []
"""


@pytest.mark.parametrize("place", ["", "127.0.0.1:{}", "ray://127.0.0.1:{}"], ids=["started", "joined", "client"])
def test_the_command_starts_a_cluster_or_joins_one_and_stdout_is_json(place, ray, ports, lines, tmp_path, monkeypatch):
    (tmp_path / "dying.py").write_text(DYING)
    command = [sys.executable, "-m", "graphprep", "convert", lines, str(tmp_path / "ray"), "--engine=ray", "--json"]
    if place:
        command += ["--scheduler", place.format(ports["ray" in place])]
    else:
        command += ["--threads=2", "--decoder=dying:DyingDecoder"]
    with tempfile.TemporaryDirectory() as temporary:
        environment = os.environ | {"TMPDIR": temporary, "PYTHONPATH": str(tmp_path)}
        done = subprocess.run(command, env=environment, capture_output=True, check=True)
        assert list(Path(temporary).iterdir()) == []
    assert sum(json.loads(done.stdout)["num_edges"].values()) == 400
    assert (tmp_path / "killed").exists() == (not place)
    monkeypatch.syspath_prepend(str(tmp_path))
    graphprep.convert(lines, tmp_path / "whole", decoder=None if place else "dying:DyingDecoder")
    assert read_store(tmp_path / "ray") == read_store(tmp_path / "whole")


def test_sigterm_does_what_it_did_and_tasks_can_be_given_up(ray, ports):
    script = """if True:
        import os, signal, sys, threading
        from graphprep.engine.local import map_ordered
        from graphprep.engine.ray_cluster import RayCluster

        def end(*given):
            raise KeyboardInterrupt

        def work():
            import time
            time.sleep(600)

        signal.signal(signal.SIGTERM, end)
        cluster = RayCluster(sys.argv[1], 1)
        threading.Timer(2, os.kill, [os.getpid(), signal.SIGTERM]).start()
        try:
            list(map_ordered(cluster.run, [work] * 9, 2, cancel=cluster.cancel))
        except KeyboardInterrupt:
            cluster.close()
            print("ended")
    """
    command = [sys.executable, "-c", script, f"127.0.0.1:{ports[0]}"]
    assert subprocess.run(command, capture_output=True, check=True, timeout=100).stdout == b"ended\n"


def test_a_head_that_is_not_there(ray, lines, tmp_path):
    for scheduler in ("127.0.0.1:9", "ray://127.0.0.1:9"):
        with pytest.raises(StorageError) as caught:
            graphprep.convert(lines, tmp_path / "out", engine="ray", scheduler=scheduler)
        assert str(caught.value).startswith(f"{scheduler}: Ray says: [Errno ")
        assert str(caught.value).endswith("\n  fix: check the address, and that head and workers run")


def test_a_python_whose_path_has_a_blank(ray, lines, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/a venv/bin/python")
    monkeypatch.setattr(ray, "is_initialized", lambda: False)  # by other tests
    with pytest.raises(UsageError) as caught:
        graphprep.convert(lines, tmp_path / "out", engine="ray")
    assert str(caught.value) == (
        "/a venv/bin/python: Ray starts no workers with a Python whose path has a blank\n"
        "  fix: install into another folder, or join a cluster with scheduler"
    )


def test_an_extra_that_is_not_installed(lines, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError) as caught:
        graphprep.convert(lines, tmp_path / "out", engine="ray")
    assert str(caught.value) == "engine=\"ray\": Ray is not installed\n  fix: pip install 'graphprep[ray]'"


@pytest.mark.parametrize(
    ("engine", "scheduler", "message"),
    [
        ("ray", "tcp://host:8786", "{} is no address of Ray\n  fix: give HOST:PORT or ray://HOST:PORT, or take {}"),
        ("ray", "host", "{} is no address of Ray\n  fix: give HOST:PORT or ray://HOST:PORT, or take {}"),
        ("dask", "ray://host:10001", "{} is no address of dask\n  fix: give tcp://HOST:PORT, or take {}"),
    ],
)
def test_addresses_of_the_other_kind_are_refused(engine, scheduler, message, lines, tmp_path):
    with pytest.raises(UsageError) as caught:
        graphprep.convert(lines, tmp_path / "out", engine=engine, scheduler=scheduler)
    assert str(caught.value) == message.format(f"scheduler {scheduler}", f'engine="{"dask" if engine == "ray" else "ray"}"')
