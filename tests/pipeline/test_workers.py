"""Workers that decode their shares of an input, and the merge: the bytes of one machine's run, whoever decodes what."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import fsspec
import numpy as np
import pytest
from golden.golden_cases import load_cases, read_store
from processes import started, wait_for

import graphprep
from graphprep.model.errors import DataError, StorageError, UsageError
from graphprep.model.protocols import Span
from graphprep.model.shown.texts import size
from graphprep.storage.read.spans import BOM, text_blocks
from graphprep.storage.read.urls import Storage

CASES = load_cases()
EVERY_COUNT = (
    "karate_csv",
    "lesmis_json",
    "davis_edgelist",
    "shop_tsv",
    "people_tables",
    "names_codes_auto",
    "peers_arrays_columns",
)
LINES = "src,dst\n" + "".join(f"{row},{row * 7 % 300}\n" for row in range(300))


def test_a_piece_has_the_lines_that_begin_in_it(tmp_path):
    """At every border, whether the file is read by ranges of the system or as a stream; also a BOM and CRLF."""
    for data in (b"ab\n\ncd\r\nefg", b"\xef\xbb\xbfa\n" + b"x" * 9 + b"\n\xef\xbb\xbfb\n"):
        (tmp_path / "text").write_bytes(data)
        fsspec.filesystem("memory").pipe_file("/pieces/text", data)
        lines = data.splitlines(keepends=True)
        starts = np.cumsum([0, *map(len, lines)])
        with Storage() as storage:
            for url in (str(tmp_path / "text"), "memory://pieces/text"):
                for start in range(len(data) + 1):
                    for stop in range(start, len(data) + 1):
                        own = [number for number in range(len(lines)) if start <= starts[number] < stop]
                        blocks = list(text_blocks(storage, Span(url, piece=(start, stop)), 4))
                        expected = b"".join(lines[number] for number in own)
                        assert b"".join(one.data for one in blocks) == (
                            expected.removeprefix(BOM) if start == 0 else expected
                        ), (url, start, stop)
                        for block in blocks:
                            assert block.is_first == (block.first_line == 1)
                        assert not blocks or blocks[0].first_line == own[0] + 1


def decode(inputs, out, count, **options):
    """Let all workers do their shares, the last one first."""
    return [graphprep.convert(inputs, out, worker_index=one, worker_count=count, **options) for one in reversed(range(count))]


@pytest.mark.parametrize(
    ("case", "count"),
    [
        pytest.param(case, count, id=f"{case.name}-{count}")
        for number, case in enumerate(CASES)
        for count in ((1, 2, 3) if case.name in EVERY_COUNT else (1 + number % 3,))
    ],
)
def test_any_number_of_workers_write_the_golden_bytes(case, count, tmp_path):
    inputs, out = [str(path) for path in case.input_paths], tmp_path / "store"
    decode(inputs, out, count, **case.resolved_options() | {"block_bytes": 16})
    graphprep.merge(out)
    assert read_store(out) == read_store(case.store)
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


@pytest.fixture
def lines(tmp_path):
    """A text that is cut into several units."""
    file = tmp_path / "edges.csv"
    file.write_text(LINES)
    return str(file)


def folder_of(out: Path) -> Path:
    return out.parent / f".{out.name}.graphprep-workers"


def segments(out: Path) -> list[Path]:
    return sorted(path for path in folder_of(out).glob("unit-*") if "." not in path.name)


def test_a_text_is_cut_between_workers_and_its_faults_have_their_lines(tmp_path, lines):
    out = tmp_path / "out"
    decode(lines, out, 2, block_bytes=8)
    assert len(segments(out)) > 3
    with Path(lines).open("a") as file:
        file.write("7,x\n")
    errors = []
    for index in range(2):
        try:
            graphprep.convert(lines, tmp_path / "other", worker_index=index, worker_count=2, block_bytes=8)
        except DataError as error:
            errors.append(str(error).splitlines()[0])
    assert errors == [f"{lines}:302:3: field 'dst' must be an integer, found 'x'"]


@pytest.mark.parametrize("place", ["memory", "s3", "hdfs"])
def test_workers_share_remote_places(place, tmp_path, lines, request):
    if place == "memory":
        url = f"memory://workers-{tmp_path.name}"
    elif place == "hdfs":
        request.getfixturevalue("hdfs")
        url = "hdfs://namenode"
    else:
        url = request.getfixturevalue("bucket").url
    fs, folder = fsspec.core.url_to_fs(f"{url}/in")
    fs.makedirs(folder, exist_ok=True)
    fs.pipe_file(f"{folder}/edges.csv", LINES.encode())
    done = decode(f"{url}/in/edges.csv", f"{url}/out", 3, block_bytes=8)
    assert all(one.output_bytes for one in done)
    alone = ("memory:// is this process's own: workers and merge in other processes find nothing there",)
    assert {one.notes[2:] for one in done} == {alone if place == "memory" else ()}
    graphprep.merge(f"{url}/out")
    graphprep.convert(lines, tmp_path / "whole")
    fs, path = fsspec.core.url_to_fs(f"{url}/out")
    got = {
        name.removeprefix(path.lstrip("/") if place == "s3" else path).strip("/"): fs.cat_file(name) for name in fs.find(path)
    }
    got.pop("provenance.json")
    assert got == read_store(tmp_path / "whole")
    assert [name for name in fs.find(fs._parent(path)) if "graphprep" in name] == []


def test_what_killed_ones_left_at_an_object_store_hinders_neither_workers_nor_merge(tmp_path, lines):
    fs, out = fsspec.filesystem("memory"), f"memory://left-{tmp_path.name}/out"
    for _ in range(2):  # the first while it began, the second while it merged
        claim = {"host": socket.gethostname(), "pid": 0, "last": "metadata.json", "names": []}
        fs.pipe_file(f"{out}/.graphprep-claim", json.dumps(claim).encode())
        decode(lines, out, 2, block_bytes=8)
        fs.pipe_file(f"{out}/part-00000/nodes/left.npy", b"half")
    graphprep.merge(out)
    graphprep.convert(lines, tmp_path / "whole")
    path = fs._strip_protocol(out)
    got = {name.removeprefix(f"{path}/"): fs.cat_file(name) for name in fs.find(path)}
    got.pop("provenance.json")
    assert got == read_store(tmp_path / "whole")
    assert fs.ls(fs._parent(path), detail=False) == [path]


def test_what_was_done_is_not_done_again(tmp_path, lines):
    out = tmp_path / "out"
    decode(lines, out, 2, block_bytes=8)
    before = [path.name for path in segments(out)]
    again = decode(lines, out, 2, block_bytes=8)
    assert [path.name for path in segments(out)] == before
    assert [one.output_bytes for one in again] == [0, 0]
    assert again[1].notes[0].startswith("worker 0 of 2 is done: ")
    assert again[1].notes[0].endswith(" of them before")
    assert again[1].notes[1] == f"all workers are done: graphprep merge {out} makes the store"


def test_missing_workers_are_named(tmp_path, lines):
    out = tmp_path / "out"
    with pytest.raises(UsageError) as caught:
        graphprep.merge(out)
    assert caught.value.message == "no worker has decoded anything for this output"
    graphprep.convert(lines, out, worker_index=1, worker_count=3, block_bytes=8)
    with pytest.raises(UsageError) as caught:
        graphprep.merge(out)
    left = {0: 0, 2: 0}
    for word in caught.value.message.split(": ")[1].removesuffix(" of 3").split("), "):
        index, units = word.removeprefix("worker ").rstrip(")").split(" (")
        left[int(index)] = int(units.split()[0])
    assert all(left.values())
    assert sum(left.values()) + len(segments(out)) == 12  # four for each worker
    assert not out.exists()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"worker_count": 3}, "option worker_count was 2 when the run began, and is 3 now"),
        ({"partitions": 2}, "option partitions was None when the run began, and is 2 now"),
    ],
)
def test_workers_of_another_run_are_refused(tmp_path, lines, options, told):
    out = tmp_path / "out"
    graphprep.convert(lines, out, worker_index=0, worker_count=2)
    with pytest.raises(UsageError) as caught:
        graphprep.convert(lines, out, **{"worker_index": 1, "worker_count": 2, **options})
    assert caught.value.message == f"worker_index: {told}"
    assert caught.value.fix == f'make it what it was, or run graphprep.clean("{out}", all_dead=True) to begin anew'


def test_another_input_is_refused_by_workers_and_merge(tmp_path, lines):
    out = tmp_path / "out"
    decode(lines, out, 1)
    os.utime(lines, ns=(1, 10**18 + 5))
    for again in (lambda: graphprep.merge(out), lambda: decode(lines, out, 1)):
        with pytest.raises(UsageError, match=rf"{lines} was [0-9,]+ bytes \(20.* when the run began, and is .* \(2001-09-09"):
            again()


def test_another_version_is_refused(tmp_path, lines):
    out = tmp_path / "out"
    decode(lines, out, 1)
    run = folder_of(out) / "run.json"
    run.write_text(run.read_text().replace(f'"version": "{graphprep.__version__}"', '"version": "0.0.9"'))
    for again in (lambda: graphprep.merge(out), lambda: decode(lines, out, 1)):
        with pytest.raises(UsageError, match=f"version was 0.0.9 when the run began, and is {graphprep.__version__} now"):
            again()


def test_workers_hold_the_output(tmp_path, lines):
    """Whatever else is to be made there, also by partitioners and operations, for which a store comes first."""
    out = tmp_path / "out"
    decode(lines, out, 2)
    for options in ({}, {"partition_by": "ldg", "partitions": 2}, {"undirected": True}, {"resume": True}):
        with pytest.raises(UsageError, match="2 workers decode for this output since 20"):
            graphprep.convert(lines, out, **options)
    assert list(tmp_path.glob("o*")) == []
    graphprep.merge(out)
    with pytest.raises(UsageError, match="the output exists"):
        decode(lines, out, 2)
    decode(lines, out, 2, overwrite=True)
    graphprep.merge(out)


def test_a_merge_that_was_done_is_told_so(tmp_path, lines):
    """Batch systems may do a job again; a run that workers began since is another, and a store made otherwise is none of theirs."""
    out = tmp_path / "out"
    decode(lines, out, 2)
    left = folder_of(out)
    shutil.copytree(left, tmp_path / "aside")
    made = graphprep.merge(out)
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    (tmp_path / "aside").rename(left)  # as if the first call had been killed at its very end
    for _ in range(2):
        again = graphprep.merge(out)
        assert (again.num_nodes, again.num_edges, again.num_parts) == (made.num_nodes, made.num_edges, made.num_parts)
        assert again.notes == ("2 workers decoded what this store was made of before: nothing is left to do",)
        assert not left.exists()
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*")} == before
    decode(lines, out, 1, overwrite=True)
    assert graphprep.merge(out).input_bytes
    graphprep.convert(lines, out, overwrite=True)
    with pytest.raises(UsageError, match="no worker has decoded anything for this output"):
        graphprep.merge(out)


def test_a_workers_plan_tells_its_share(tmp_path, lines):
    given = {"worker_count": 3, "block_bytes": 150}
    shares = 0
    for index in range(3):
        (note, *_) = graphprep.plan(lines, worker_index=index, **given).notes
        own = re.fullmatch(rf"worker {index} of 3 decodes (\d+) of (\d+) units, (.*?); all else here is .*", note)
        done = graphprep.convert(lines, tmp_path / "out", worker_index=index, **given)
        assert done.notes[0] == f"worker {index} of 3 is done: {own[1]} units decoded"
        assert own[3] == size(done.input_bytes)
        shares += int(own[1])
    assert shares == int(own[2])
    with pytest.raises(UsageError, match=r"worker_index.2 is not below worker_count.2"):
        graphprep.plan(lines, worker_index=2, worker_count=2)


def test_a_run_is_given_up_with_clean(tmp_path, lines):
    """Also from the process that worked on it: it holds nothing any more."""
    out = tmp_path / "out"
    decode(lines, out, 2)
    with pytest.raises(UsageError) as caught:
        graphprep.convert(lines, out)
    assert caught.value.fix == f'merge it when they are done, or run graphprep.clean("{out}", all_dead=True) to give them up'
    with pytest.raises(UsageError):
        graphprep.convert(lines, out, worker_index=0, worker_count=3)
    (gone,) = graphprep.clean(out, all_dead=True).removed
    assert gone.place == str(folder_of(out))
    graphprep.convert(lines, out)


@pytest.mark.parametrize("harm", ["flip", "shorten", "remove", "lengthen"])
def test_a_damaged_segment_is_told_and_decoded_again(tmp_path, lines, harm):
    out = tmp_path / "out"
    decode(lines, out, 2, block_bytes=8)
    victim = segments(out)[1]
    data = victim.read_bytes()
    changed = {"flip": data[:-30] + bytes([data[-30] ^ 1]) + data[-29:], "shorten": data[:-1], "lengthen": data + b"x"}
    victim.unlink() if harm == "remove" else victim.write_bytes(changed[harm])
    with pytest.raises(StorageError) as caught:
        graphprep.merge(out)
    assert caught.value.message == "is not what was written"
    assert caught.value.place == str(victim)
    assert not out.exists()
    decode(lines, out, 2, block_bytes=8)
    graphprep.merge(out)
    graphprep.convert(lines, tmp_path / "whole")
    assert read_store(out) == read_store(tmp_path / "whole")


def test_columns_that_turn_out_to_be_text_are_decoded_again(tmp_path):
    """No worker sees both files: only the merge knows that the column is text."""
    for name, cell in (("a", "1"), ("b", "x")):
        (tmp_path / f"{name}.csv").write_text(f"src,dst,kind\n0,1,{cell}\n1,2,{cell}\n")
    inputs = [str(tmp_path / f"{name}.csv") for name in "ab"]
    decode(inputs, tmp_path / "out", 2, block_bytes=1)
    graphprep.merge(tmp_path / "out")
    graphprep.convert(inputs, tmp_path / "whole")
    assert read_store(tmp_path / "out") == read_store(tmp_path / "whole")


def test_skipped_records_are_listed_once_and_in_order(tmp_path):
    file = tmp_path / "edges.csv"
    file.write_text("src,dst\n" + "".join(f"{row},{'x' if row % 50 == 7 else row}\n" for row in range(300)))
    options = {"on_error": "skip", "format": "edges", "block_bytes": 8}
    decode(str(file), tmp_path / "out", 3, bad_records=str(tmp_path / "bad"), **options)
    assert graphprep.merge(tmp_path / "out").num_skipped == 6
    bad = [json.loads(line)["place"] for line in (tmp_path / "bad").read_text().splitlines()]
    assert bad == [f"{file}:{line}:{len(str(line - 2)) + 2}" for line in range(9, 300, 50)]
    graphprep.convert(str(file), tmp_path / "whole", **options)
    assert read_store(tmp_path / "out") == read_store(tmp_path / "whole")


def test_two_workers_with_one_index_change_nothing(tmp_path, lines):
    out, failures = tmp_path / "out", []

    def work() -> None:
        try:
            decode(lines, out, 1, block_bytes=8)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert failures == []
    graphprep.merge(out)
    graphprep.convert(lines, tmp_path / "whole")
    assert read_store(out) == read_store(tmp_path / "whole")


def test_operations_and_partitioners_work_on_what_workers_decoded(tmp_path, lines):
    options = {"undirected": True, "partition_by": "fennel", "partitions": 2}
    decode(lines, tmp_path / "out", 2, block_bytes=8, **options)
    graphprep.merge(tmp_path / "out")
    graphprep.convert(lines, tmp_path / "whole", **options)
    assert read_store(tmp_path / "out") == read_store(tmp_path / "whole")


def test_half_of_the_options_is_refused(tmp_path, lines):
    for given, told in (
        ({"worker_index": 0}, "worker_index needs worker_count"),
        ({"worker_count": 2}, "worker_count needs worker_index"),
        ({"worker_index": 2, "worker_count": 2}, "worker_index 2 is not below worker_count 2"),
        ({"worker_index": 0, "worker_count": 2, "resume": True}, "resume=True is for merge"),
    ):
        with pytest.raises(UsageError, match=f"^{told}"):
            graphprep.convert(lines, tmp_path / "out", **given)


def test_a_killed_worker_goes_on(tmp_path):
    """SIGKILL in the middle, then the same command again, and the merge; all by the command line."""
    file, out = tmp_path / "edges.txt", tmp_path / "out"
    np.savetxt(file, np.random.default_rng(3).integers(0, 9_000, (600_000, 2)), "%d")
    base = [sys.executable, "-m", "graphprep"]
    flags = ["--format", "edges", "--memory-limit", "120MiB", "--threads", "1", "--quiet"]
    worker = [*base, "convert", str(file), str(out), "--worker-index", "0", "--worker-count", "1", *flags]
    with started(worker) as process:
        wait_for(lambda: len(list(folder_of(out).glob("unit-*"))) >= 2)
        process.send_signal(signal.SIGKILL)
    before = {path.name for path in folder_of(out).glob("unit-*.*")}
    subprocess.run(worker, check=True, capture_output=True)
    assert before <= {path.name for path in folder_of(out).glob("unit-*.*")}
    subprocess.run([*base, "merge", str(out), "--quiet"], check=True, capture_output=True)
    graphprep.convert(str(file), tmp_path / "whole", format="edges")
    assert read_store(out) == read_store(tmp_path / "whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["edges.txt", "out", "whole"]


def test_a_secret_in_an_input_is_written_nowhere(tmp_path):
    with pytest.raises(UsageError, match="an input has a secret in its URL"):
        graphprep.convert(
            "https://example.org/e.csv?X-Amz-Signature=abcdef0123", tmp_path / "out", worker_index=0, worker_count=1
        )
    assert list(tmp_path.iterdir()) == []
