"""Runs that are killed, lose a worker, or find no room: ``--resume`` ends with an undisturbed run's bytes, ``clean`` leaves nothing.

GRAPHPREP_KILLS says how many moments there are: ``make test-faults`` takes 60, other runs a tenth.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from golden.golden_cases import read_store
from processes import started, wait_for

import graphprep

pytestmark = pytest.mark.heavy
KILLS = int(os.environ.get("GRAPHPREP_KILLS", "6"))
FAILED, EXISTS = 3, 2


@pytest.fixture
def lines(tmp_path):
    """Edges between names, with a weight."""
    ends = np.random.default_rng(7).integers(0, 3_000, (8_000, 2)).tolist()
    file = tmp_path / "edges.csv"
    file.write_text("src,dst,weight\n" + "".join(f"n{src},n{dst},{src % 7}.5\n" for src, dst in ends))
    return file


def run_job(tmp_path, lines, how, seeds, folder=None, before=(), **more):
    """Let runs of these seeds be disturbed; return how each ended, by seed."""
    made, scratch = folder or str(tmp_path / "made"), tmp_path / "scratch"
    for path in (scratch, *([Path(made)] if folder is None else ())):
        path.mkdir()
    options = {"decoder_options": {"id_type": "string"}, "block_bytes": 20_000, "partitions": 2, **more.pop("options", {})}
    job = {"inputs": [str(lines)], "folder": made, "options": options, "how": how, "seeds": list(seeds), **more}
    command = [*before, sys.executable, str(Path(__file__).with_name("killed.py")), json.dumps(job)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=600, check=False, env=os.environ | {"TMPDIR": str(scratch)}
    )
    assert done.returncode == 0, done.stderr
    return {one["seed"]: one["codes"] for one in map(json.loads, done.stdout.splitlines())}, done.stderr


def check_places(tmp_path, made, codes):
    """All stores are that of an undisturbed run, and nothing else is left once it is cleaned up."""
    graphprep.clean(made, tmp_path / "scratch")
    stores = {"whole", *(f"out-{seed}" for seed in codes)}
    assert {path.name for path in made.iterdir()} == stores
    assert list((tmp_path / "scratch").iterdir()) == []
    whole = read_store(made / "whole")
    for seed, ended in codes.items():
        assert ended[-1] in (0, EXISTS), (seed, ended)
        assert read_store(made / f"out-{seed}") == whole, seed


@pytest.mark.parametrize(
    ("options", "share"),
    [({}, 1), ({"engine": "processes"}, 5), ({"partition_by": "ldg"}, 5)],
    ids=["threads", "processes", "partitions by edges"],
)
def test_killed_runs_go_on_to_the_same_bytes(options, share, tmp_path, lines):
    count = max(1, KILLS // share)
    codes, _ = run_job(tmp_path, lines, "run", range(count), options=options)
    killed = [code for ended in codes.values() for code in ended[:-1]]
    assert killed.count(-signal.SIGKILL) >= count // 2
    assert set(killed) <= {-signal.SIGKILL, 0, EXISTS}  # a run that was killed late had little left to do
    check_places(tmp_path, tmp_path / "made", codes)


def test_workers_that_are_killed_go_on_and_so_does_who_merges_what_they_decoded(tmp_path, lines):
    codes, _ = run_job(tmp_path, lines, "run", range(max(1, KILLS // 5)), workers=2)
    graphprep.clean(tmp_path / "made", all_dead=True)  # of workers nobody knows whether they come back
    check_places(tmp_path, tmp_path / "made", codes)


def test_runs_killed_at_any_time_go_on_to_the_same_bytes(tmp_path, lines):
    """Also where no call of the system is near."""
    codes, _ = run_job(tmp_path, lines, "time", range(max(1, KILLS // 5)), most_s=1.0)
    check_places(tmp_path, tmp_path / "made", codes)


@pytest.mark.parametrize("layout", ["csc", "both"])
def test_runs_killed_while_they_build_do_not_build_again_what_was_recorded(layout, tmp_path, lines):
    """``both``: the second layout is made of the pieces of the first, beside columns that wait for their rows."""
    log, count = tmp_path / "log", max(3, KILLS // 3)
    log.mkdir()
    options = {"layout": layout, "partitions": 5, "neighbor_order": "weight" if layout == "both" else "id"}
    codes, _ = run_job(tmp_path, lines, "build", range(count), options=options, log=str(log))
    killed = [code for ended in codes.values() for code in ended[:-1]]
    assert killed.count(-signal.SIGKILL) >= count // 2
    check_places(tmp_path, tmp_path / "made", codes)
    pieces = [line for line in (log / "whole").read_text().splitlines() if line[0] == "e"]
    assert len(pieces) > 20
    spared = 0
    for seed in codes:
        written = recorded = 0
        for line in (log / f"out-{seed}").read_text().splitlines():
            if line == "kept build in part":
                recorded = written
            elif line == "run":
                spared += recorded > 0
            elif line in pieces:
                assert recorded <= pieces.index(line) <= written, (seed, line)
                written = pieces.index(line) + 1
        assert written == len(pieces), seed
    assert spared


def test_lost_workers_change_nothing(tmp_path, lines):
    codes, _ = run_job(tmp_path, lines, "worker", range(max(1, KILLS // 6)), options={"engine": "processes"})
    assert {ended[0] for ended in codes.values()} == {0}
    check_places(tmp_path, tmp_path / "made", codes)


def test_runs_that_find_no_room_tell_it_and_go_on(tmp_path, lines):
    """A limit of the size of files is what can be had without root."""
    codes, said = run_job(tmp_path, lines, "limit", range(max(2, KILLS // 6)))
    failed = [code for ended in codes.values() for code in ended[:-1]]
    assert FAILED in failed
    assert set(failed) <= {FAILED, EXISTS, 0}
    told = {json.loads(line)["error"].partition(": ")[2] for line in said.splitlines() if "ulimit" in line}
    fix = "\n  fix: raise the limit (ulimit -f), or choose another place"
    assert told
    assert told <= {
        f"the file grew beyond what the system allows{fix}{more}" for more in ("", " with --tmp-dir", " with tmp_dir")
    }
    check_places(tmp_path, tmp_path / "made", codes)


def check_bucket(tmp_path, bucket, codes):
    """Do the same for stores on S3."""
    graphprep.clean(f"{bucket.url}/kills", tmp_path / "scratch")
    found = {name: {} for name in ("whole", *(f"out-{seed}" for seed in codes))}
    for path, data in bucket.files("kills").items():
        name, _, rest = path.partition("/")
        if rest != "provenance.json":
            found[name][rest] = data
    for seed, ended in codes.items():
        assert ended[-1] in (0, EXISTS), (seed, ended)
        assert found[f"out-{seed}"] == found["whole"], seed
    assert bucket.uploads() == []
    assert list((tmp_path / "scratch").iterdir()) == []


@pytest.mark.parametrize(("workers", "share"), [(0, 3), (2, 6)], ids=["one process", "workers"])
def test_runs_to_s3_that_are_killed_go_on_to_the_same_bytes(workers, share, tmp_path, lines, bucket):
    codes, _ = run_job(tmp_path, lines, "run", range(max(2, KILLS // share)), f"{bucket.url}/kills", workers=workers)
    if workers:
        graphprep.clean(f"{bucket.url}/kills", all_dead=True)
    check_bucket(tmp_path, bucket, codes)


@pytest.fixture
def small_disk(tmp_path):
    """What mounts a disk of a size in KiB in memory."""
    mounted = []

    def mount(num_kib):
        place = tmp_path / f"disk-{num_kib}"
        place.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={num_kib}k,mode=700", "tmpfs", str(place)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"no disk can be mounted: {done.stderr.strip()}")
        mounted.append(place)
        return place

    yield mount
    for place in mounted:
        subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_is_told_and_a_larger_one_serves(tmp_path, lines, small_disk):
    command = [sys.executable, "-m", "graphprep", "convert", str(lines), "--id-type", "string", "--resume", "--quiet"]
    subprocess.run([*command, str(tmp_path / "whole")], check=True)
    place, failed = small_disk(1000), 0
    tried = [*command, str(place / "out"), "--memory-limit", "300MiB"]
    for num_kib in (200, 500, 800, 8_000):
        subprocess.run(["mount", "-o", f"remount,size={num_kib}k", str(place)], check=True, capture_output=True)
        done = subprocess.run(tried, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            break
        assert done.returncode == FAILED, done.stderr
        assert "no space left on device" in done.stderr or " are free" in done.stderr
        assert not (place / "out").exists()
        failed += 1
    assert failed
    assert read_store(place / "out") == read_store(tmp_path / "whole")
    graphprep.clean(place)
    assert [path.name for path in place.iterdir()] == ["out"]


# ------------------------------------------------------------------------------------------------ the network

_NETWORK = "10.213.77"


@pytest.fixture
def far_server(aws, monkeypatch):
    """An S3 server in a network namespace: a bucket, what starts a process in another one, and this one's link to the server."""
    from remote_places import ACCESS_KEY, SECRET_KEY, Bucket

    for package in ("moto.server", "s3fs"):
        pytest.importorskip(package)
    server, client = f"gp-s-{os.getpid()}", f"gp-c-{os.getpid()}"
    links = {"": ("gp-near", "gp-s-near", 1, 2), client: ("gp-far", "gp-s-far", 5, 6)}

    def ip(*words, namespace=""):
        command = ["ip", *(("-n", namespace) if namespace else ()), *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"no network namespaces: {done.stderr.strip()}")

    if shutil.which("ip") is None:
        pytest.skip("no network namespaces: ip is not installed")
    with contextlib.ExitStack() as stack:
        for name in (server, client):
            ip("netns", "add", name)
            stack.callback(subprocess.run, ["ip", "netns", "del", name], check=False)
            ip("link", "set", "lo", "up", namespace=name)
        for namespace, (near, far, first, second) in links.items():
            ip("link", "add", near, "type", "veth", "peer", "name", far)
            stack.callback(
                subprocess.run, ["ip", "link", "del", near], capture_output=True, check=False
            )  # goes with its namespace
            ip("link", "set", far, "netns", server)
            ip("addr", "add", f"{_NETWORK}.{second}/30", "dev", far, namespace=server)
            ip("link", "set", far, "up", namespace=server)
            if namespace:
                ip("link", "set", near, "netns", namespace)
            ip("addr", "add", f"{_NETWORK}.{first}/30", "dev", near, namespace=namespace)
            ip("link", "set", near, "up", namespace=namespace)
        command = ["ip", "netns", "exec", server, sys.executable, "-m", "moto.server", "-H", "0.0.0.0", "-p", "5000"]
        stack.enter_context(started(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL))

        def is_up():
            with contextlib.suppress(OSError), socket.create_connection((f"{_NETWORK}.2", 5000), 1):
                return True
            return False

        wait_for(is_up)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
        bucket = Bucket.make(f"http://{_NETWORK}.2:5000")
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{_NETWORK}.6:5000")
        yield bucket, ("ip", "netns", "exec", client), "gp-far"


@pytest.mark.heavy
def test_a_cut_link_is_told_and_the_run_goes_on(tmp_path, lines, far_server, monkeypatch):
    bucket, before, link = far_server
    given = bucket.put("edges.csv", lines.read_bytes())
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "2")
    waits = {"s3.config_kwargs.connect_timeout": "2", "s3.config_kwargs.read_timeout": "2"}
    more = {"link": link, "pause_s": 5, "storage": waits}
    count = max(1, KILLS // 12)
    codes, said = run_job(tmp_path, given, "cut", range(count), f"{bucket.url}/kills", before, **more)
    assert {code for ended in codes.values() for code in ended[:-1]} <= {0, FAILED, EXISTS}
    for line in said.splitlines():
        error = json.loads(line)["error"]
        assert "internal" not in error
        assert "\n  fix: " in error
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{_NETWORK}.2:5000")
    check_bucket(tmp_path, bucket, codes)
