"""Workers of dask that decode: real processes, the golden bytes, also where one is killed; other versions are refused."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest
from golden.golden_cases import load_cases, read_store

import graphprep
from graphprep.convert.read.apart import ApartTask
from graphprep.engine import cluster as clusters
from graphprep.engine import dask_cluster
from graphprep.model.errors import DataError, StorageError, UsageError

distributed = pytest.importorskip("distributed")
NAMES = ("karate_csv", "edges_plain_gz", "people_tables", "peers_arrays_columns")


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes on 127.0.0.1."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0", memory_limit=0
    ) as made:
        yield made


@pytest.mark.parametrize("case", [one for one in load_cases() if one.name in NAMES], ids=lambda case: case.name)
def test_dask_writes_the_golden_bytes(case, cluster, tmp_path):
    options = case.resolved_options() | {"block_bytes": 16}
    inputs = [str(path) for path in case.input_paths]
    graphprep.convert(inputs, tmp_path / "store", engine="dask", scheduler=cluster.scheduler_address, **options)
    assert read_store(tmp_path / "store") == read_store(case.store)
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


@pytest.fixture
def lines(tmp_path):
    file = tmp_path / "edges.csv"
    file.write_text("".join(f"{row},{row * 7 % 300}\n" for row in range(400)))
    return str(file)


def test_a_worker_killed_while_it_decodes_changes_nothing(cluster, lines, tmp_path, monkeypatch):
    killed, results, submit = [], [], distributed.Client.submit

    def killing(self, task, **options):
        if isinstance(task, ApartTask) and len(results) == 3 and not killed:
            killed.append(next(iter(self.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)
        future = submit(self, task, **options)
        results.append(future)
        return future

    lock = threading.Lock()

    def one_by_one(self, task, **options):
        with lock:
            return killing(self, task, **options)

    monkeypatch.setattr(distributed.Client, "submit", one_by_one)
    graphprep.convert(lines, tmp_path / "dask", engine="dask", scheduler=cluster.scheduler_address, block_bytes=16)
    assert killed
    assert len(results) >= 4
    graphprep.convert(lines, tmp_path / "whole")
    assert read_store(tmp_path / "dask") == read_store(tmp_path / "whole")


def test_only_names_sizes_and_checksums_come_back(cluster, lines, tmp_path, monkeypatch):
    found, run = [], dask_cluster.DaskCluster.run

    def watched(self, task):
        found.append(run(self, task))
        return found[-1]

    monkeypatch.setattr(dask_cluster.DaskCluster, "run", watched)
    graphprep.convert(lines, tmp_path / "out", engine="dask", scheduler=cluster.scheduler_address, block_bytes=16)
    assert len(found) >= 4
    assert {tuple(map(type, one)) for one in found} == {(str, int, str)}


def test_faults_have_their_place_and_leave_nothing(cluster, lines, tmp_path):
    with Path(lines).open("a") as file:
        file.write("7,x\n")
    with pytest.raises(DataError) as caught:
        graphprep.convert(lines, tmp_path / "out", engine="dask", scheduler=cluster.scheduler_address, block_bytes=16)
    assert str(caught.value).startswith(f"{lines}:401:3: field 'dst' must be an integer, found 'x'")
    assert [path.name for path in tmp_path.iterdir()] == ["edges.csv"]


def test_other_versions_are_refused(cluster, lines, tmp_path, monkeypatch):
    own = clusters.versions()
    monkeypatch.setattr(clusters, "versions", lambda: own | {"NumPy": "1.0"})
    monkeypatch.setattr(distributed.Client, "run", lambda self, work: {"tcp://one": own})
    with pytest.raises(UsageError) as caught:
        graphprep.convert(lines, tmp_path / "out", engine="dask", scheduler=cluster.scheduler_address)
    assert caught.value.message == f"worker tcp://one of dask has NumPy {own['NumPy']}, and 1.0 is here"


def test_a_folder_that_workers_do_not_see_is_told(cluster, lines, tmp_path, monkeypatch):
    run = distributed.Client.run
    monkeypatch.setattr(
        distributed.Client,
        "run",
        lambda self, work: run(self, work) if work is clusters.versions else {"tcp://one": False},
    )
    with pytest.raises(UsageError, match="worker tcp://one does not see this folder"):
        graphprep.convert(lines, tmp_path / "out", engine="dask", scheduler=cluster.scheduler_address)
    assert [path.name for path in tmp_path.iterdir()] == ["edges.csv"]


def test_a_scheduler_that_is_not_there(lines, tmp_path, monkeypatch):
    monkeypatch.setattr(dask_cluster, "CONNECT_S", 1)
    with pytest.raises(StorageError, match="no scheduler with workers answers"):
        graphprep.convert(lines, tmp_path / "out", engine="dask", scheduler="tcp://127.0.0.1:9")
    with pytest.raises(UsageError, match='scheduler belongs to engine="dask" and engine="ray"'):
        graphprep.convert(lines, tmp_path / "out", scheduler="tcp://127.0.0.1:9")


def test_a_cluster_is_started_where_none_is_named(lines, tmp_path):
    graphprep.convert(lines, tmp_path / "dask", engine="dask", threads=1, block_bytes=16)
    graphprep.convert(lines, tmp_path / "whole")
    assert read_store(tmp_path / "dask") == read_store(tmp_path / "whole")
