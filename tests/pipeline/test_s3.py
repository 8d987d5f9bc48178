"""Commands from and to S3: the bytes of local runs, nothing half done, failures in one line, no secrets."""

from __future__ import annotations

import functools
import gzip
import json
import socket
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from golden.golden_cases import SAMPLE_DATA, load_cases, read_store
from remote_places import ACCESS_KEY, SECRET_KEY

from graphprep.cli.main import run
from graphprep.convert.build.write import StoreBuilder
from graphprep.convert.pipeline import convert
from graphprep.model.errors import DataError, StorageError
from graphprep.model.options.convert import ConvertOptions
from graphprep.model.run_options import RunOptions
from graphprep.storage.read import ranges
from graphprep.storage.read.arrays import StoreReader
from graphprep.storage.read.urls import Storage
from graphprep.storage.write import objects

CASES = {case.name: case for case in load_cases()}
SHOWN = [
    "edges_plain",
    "edges_plain_gz",
    "edges_parquet",
    "edges_split_folder",
    "karate_partition_file",
    "davis_partition_folder",
    "shop_json",
    "shop_edgelist_both_parts",
    "shop_chunked_parts",
    "dtypes_edgelist",
]


def stored(bucket, path):
    """The files of a store in a bucket, without provenance.json."""
    files = bucket.files(path)
    files.pop("provenance.json", None)
    return files


def uploaded(bucket, inputs):
    """Put samples into the bucket, and return their URLs."""
    urls = []
    for one in inputs:
        path = SAMPLE_DATA / one
        if path.name == "metadata.json":
            urls.append(bucket.put_folder(path.parent, f"in/{one}") + "/metadata.json")
            continue
        urls.append(bucket.put_folder(path, f"in/{one}") if path.is_dir() else bucket.put(f"in/{one}", path.read_bytes()))
    return urls


@functools.lru_cache(maxsize=4)
def edges_text(num_edges, num_nodes=5000, seed=0):
    pairs = np.random.default_rng(seed).integers(0, num_nodes, (num_edges, 2))
    return b"".join(b"%d %d\n" % (src, dst) for src, dst in pairs.tolist())


# ---- the same bytes


@pytest.mark.parametrize("name", SHOWN)
def test_from_s3_to_s3_writes_the_golden_bytes(name, bucket):
    case = CASES[name]
    options = dict(case.options)
    method = options.get("partition_by", "range")
    if "/" in method:
        options["partition_by"] = uploaded(bucket, [method])[0]
    if "decoder_options_file" in options.get("decoder_options", {}):
        pytest.fail("a case with a path among its options")
    convert(uploaded(bucket, case.inputs), f"{bucket.url}/out/store", ConvertOptions(**options))
    assert stored(bucket, "out/store") == read_store(case.store)
    assert bucket.uploads() == []


@pytest.mark.parametrize("block_bytes", [1 << 10, 100_003, 1 << 20])
def test_text_in_ranges_gives_the_bytes_of_a_local_run(block_bytes, bucket, tmp_path, monkeypatch):
    monkeypatch.setattr(ranges, "_LEAST_PIECE", 1 << 14)
    monkeypatch.setattr(ranges, "_SLACK_BYTES", 1 << 12)
    text = b"\xef\xbb\xbf# nodes of a line that is longer than a range\n" + b"#" * 70_000 + b"\n" + edges_text(60_000)
    (tmp_path / "a.txt").write_bytes(text.rstrip(b"\n"))
    url = bucket.put("a.txt", text.rstrip(b"\n"))
    options = ConvertOptions(format="edges", block_bytes=block_bytes, run=RunOptions(threads=3))
    convert([str(tmp_path / "a.txt")], str(tmp_path / "local"), options)
    convert([url], f"{bucket.url}/store", options)
    assert stored(bucket, "store") == read_store(tmp_path / "local")


def test_compressed_text_and_folders(bucket, tmp_path):
    parts = [edges_text(3000, seed=seed) for seed in range(3)]
    (tmp_path / "all.txt").write_bytes(b"".join(parts))
    bucket.put("in/part-0.gz", gzip.compress(parts[0]))
    bucket.put("in/part-1", parts[1])
    bucket.put("in/part-2.gz", gzip.compress(parts[2][:999]) + gzip.compress(parts[2][999:]))
    bucket.put("in/_SUCCESS", b"")
    convert([str(tmp_path / "all.txt")], str(tmp_path / "local"), ConvertOptions(format="edges"))
    convert([f"{bucket.url}/in"], f"{bucket.url}/folder", ConvertOptions(format="edges"))
    convert([f"{bucket.url}/in/part-*"], f"{bucket.url}/glob", ConvertOptions(format="edges"))
    assert stored(bucket, "folder") == stored(bucket, "glob") == read_store(tmp_path / "local")


def test_large_arrays_go_up_in_parts(bucket, tmp_path):
    text = edges_text(700_000, num_nodes=300_000)
    (tmp_path / "a.txt").write_bytes(text)
    options = ConvertOptions(format="edges", partitions=3, index_dtype="int64")
    convert([str(tmp_path / "a.txt")], str(tmp_path / "local"), replace(options, partitions=1))
    convert([bucket.put("a.txt", text)], f"{bucket.url}/store", replace(options, partitions=1))
    assert stored(bucket, "store") == read_store(tmp_path / "local")
    sizes = [len(data) for data in stored(bucket, "store").values()]
    assert max(sizes) > objects.PART_BYTES  # else this shows nothing
    assert bucket.uploads() == []


# ---- every command


def test_every_command_from_the_shell(bucket, capsys, tmp_path):
    url = bucket.put("in/karate.csv", (SAMPLE_DATA / "karate/karate.csv").read_bytes())
    store = f"{bucket.url}/store"
    assert run(["info", url]) == 0
    assert "--format edges" in capsys.readouterr().out
    assert run(["validate", url, "--format", "edges"]) == 0
    assert run(["convert", url, store, "--format", "edges", "--partitions", "2"]) == 0
    capsys.readouterr()
    assert run(["info", store, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["num_parts"] == 2
    assert run(["validate", store]) == 0
    capsys.readouterr()
    file = bucket.put("ids.txt", b"0\n33\n5\n")
    assert run(["ids", store, "--from", "raw", "--to", "local", "--file", file]) == 0
    remote = capsys.readouterr().out
    assert run(["convert", str(SAMPLE_DATA / "karate/karate.csv"), str(tmp_path / "s"), "--partitions", "2"]) == 0
    capsys.readouterr()
    assert run(["ids", str(tmp_path / "s"), "0", "33", "5", "--from", "raw", "--to", "local"]) == 0
    assert capsys.readouterr().out == remote


def test_credentials_as_storage_options(bucket, monkeypatch, capsys):
    url = bucket.put("karate.csv", (SAMPLE_DATA / "karate/karate.csv").read_bytes())
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name)
    given = {"s3.endpoint_url": bucket.endpoint, "s3.key": ACCESS_KEY, "s3.secret": SECRET_KEY}
    flags = [text for key, value in given.items() for text in ("--storage-option", f"{key}={value}")]
    store = f"{bucket.url}/store"
    assert run(["convert", url, store, *flags]) == 0
    assert run(["info", store, *flags]) == 0
    assert run(["validate", store, *flags]) == 0
    ids = bucket.put("ids.txt", b"5\n")
    assert run(["ids", store, "--from", "raw", "--to", "typed", "--file", ids, *flags]) == 0
    provenance = bucket.files("store")["provenance.json"]
    shown = capsys.readouterr()
    assert SECRET_KEY not in shown.out + shown.err
    assert SECRET_KEY.encode() not in provenance
    assert b"s3.secret" not in provenance or b"***" in provenance


def test_ids_there_and_back_through_a_remote_store(bucket):
    raw = np.unique(np.random.default_rng(0).integers(0, 1 << 40, 60_000))
    pairs = np.stack([raw, np.roll(raw, 1)], axis=1)
    url = bucket.put("a.txt", b"".join(b"%d %d\n" % (a, b) for a, b in pairs.tolist()))
    for partition_by in ("range", "hash"):
        store = f"{bucket.url}/{partition_by}"
        convert([url], store, ConvertOptions(format="edges", partitions=3, partition_by=partition_by))
        import graphprep

        wanted = np.random.default_rng(1).permutation(raw)[:3000]
        typed = graphprep.ids(store, wanted, from_="raw", to="typed")
        assert np.array_equal(graphprep.ids(store, typed, from_="typed", to="raw"), wanted.astype(np.uint64))


def test_schema_and_bad_records_on_s3(bucket, tmp_path, capsys):
    good = bucket.put("good.txt", b"0 1\n1 2\n")
    assert run(["info", good, "--format", "edges", "--json"]) == 0
    capsys.readouterr()
    bad = bucket.put("bad.txt", b"0 1\nx 2\n1 2\n")
    target = f"{bucket.url}/rejects/bad.jsonl"
    flags = ["--format", "edges", "--on-error", "skip", "--bad-records", target]
    assert run(["convert", bad, f"{bucket.url}/store", *flags]) == 0
    line = json.loads(bucket.files("rejects")["bad.jsonl"])
    assert line["place"] == f"{bad}:2:1"
    convert([good], f"{bucket.url}/plain", ConvertOptions(format="edges"))
    assert stored(bucket, "store") == stored(bucket, "plain")


# ---- what is there stays


def test_what_exists_is_refused_and_replaced_on_demand(bucket, capsys):
    one, two = bucket.put("1.txt", b"0 1\n"), bucket.put("2.txt", b"0 1\n1 0\n")
    store = f"{bucket.url}/a/store"
    assert run(["convert", one, store, "--format", "edges"]) == 0
    before = stored(bucket, "a/store")
    capsys.readouterr()
    assert run(["convert", two, store, "--format", "edges"]) == 2
    assert capsys.readouterr().err.endswith(
        f"error: {store}: the output exists\n  fix: choose another name, or give --overwrite\n"
    )
    assert stored(bucket, "a/store") == before
    other = bucket.put("a/store/part-00000/other.npy", b"x")
    assert run(["convert", two, store, "--format", "edges", "--overwrite"]) == 2
    assert "did not write there: part-00000/other.npy;" in capsys.readouterr().err
    assert stored(bucket, "a/store").items() - {("part-00000/other.npy", b"x")} == before.items()
    bucket.fs.rm(other)
    assert run(["convert", two, store, "--format", "edges", "--overwrite"]) == 0
    after = stored(bucket, "a/store")
    assert after.keys() == before.keys()
    assert after != before
    assert [path for path in bucket.files("a") if not path.startswith("store/")] == []


def test_names_that_look_like_patterns_remove_nothing_else(bucket):
    other = bucket.put("out1/part-00000/manifest.json", b"mine")
    url = bucket.put("a.txt", b"0 1\n")
    store = f"{bucket.url}/out[1]"
    for _ in range(2):
        convert([url], store, ConvertOptions(format="edges", overwrite=True))
    bad = bucket.put("bad.txt", b"0 x\n")
    with pytest.raises(DataError):
        convert([bad], store, ConvertOptions(format="edges", overwrite=True))
    assert "out1/part-00000/manifest.json" in bucket.files()
    assert other.startswith(bucket.url)
    assert "metadata.json" in bucket.files("out[1]")


# ---- nothing half done


def test_bad_data_leaves_nothing(bucket):
    url = bucket.put("bad.txt", edges_text(2000) + b"0 x\n")
    with pytest.raises(DataError) as caught:
        convert([url], f"{bucket.url}/store", ConvertOptions(format="edges"))
    assert str(caught.value).startswith(f"{url}:2001:3: ")
    assert list(bucket.files()) == ["bad.txt"]
    assert bucket.uploads() == []


@pytest.mark.parametrize("error", [RuntimeError("a bug"), KeyboardInterrupt(), OSError(5, "lost")])
@pytest.mark.parametrize("number", [0, 2])
def test_an_exception_during_an_upload_leaves_nothing(error, number, bucket, monkeypatch):
    url = bucket.put("a.txt", edges_text(700_000, num_nodes=300_000))
    whole = objects.ObjectSink._upload
    calls = []

    def fail(self):
        calls.append(self)
        if len(calls) > number:
            raise error
        whole(self)

    monkeypatch.setattr(objects.ObjectSink, "_upload", fail)
    with pytest.raises((type(error), StorageError)):
        convert([url], f"{bucket.url}/store", ConvertOptions(format="edges", index_dtype="int64"))
    assert len(calls) > number
    assert list(bucket.files()) == ["a.txt"]
    assert bucket.uploads() == []


def test_a_killed_run_leaves_no_metadata_and_is_replaced_on_demand(bucket, capsys):
    url = bucket.put("a.txt", edges_text(300_000))
    store = f"{bucket.url}/store"
    code = (
        "import os, sys\n"
        "from graphprep.model.options.convert import ConvertOptions\n"
        "from graphprep.convert.pipeline import convert\n"
        "from graphprep.storage.write.publish import StoreWriter\n"
        "def die(self, metadata):\n"
        "    self.url_of('')\n"  # sends what waits
        "    os.kill(os.getpid(), 9)\n"
        "StoreWriter.publish = die\n"
        "convert([sys.argv[1]], sys.argv[2], ConvertOptions(format='edges'))\n"
    )
    killed = subprocess.run([sys.executable, "-c", code, url, store], capture_output=True, check=False)
    assert killed.returncode == -9, killed.stderr
    left = bucket.files("store")
    assert "part-00000/manifest.json" in left
    assert "metadata.json" not in left
    assert run(["info", store]) != 0
    assert "metadata.json is missing" in capsys.readouterr().err
    assert run(["convert", url, store, "--format", "edges"]) == 2
    assert run(["convert", url, store, "--format", "edges", "--overwrite"]) == 0
    assert run(["validate", store]) == 0


KILLED_LATE = """
import os, sys
from graphprep.cli.main import run
from graphprep.storage.write.publish import StoreWriter
publish = StoreWriter.publish
def die(self, metadata):
    if not self._out.startswith("s3:"):
        return publish(self, metadata)
    self.url_of("")  # sends what waits
    os.kill(os.getpid(), 9)
StoreWriter.publish = die
run(sys.argv[1:])
"""


@pytest.mark.parametrize("words", ["", "--partition-by ldg", "--undirected", "merge"])
def test_a_killed_run_goes_on_behind_its_finished_tasks(words, bucket, tmp_path, monkeypatch, capsys):
    """Also those that rewrite what they converted, and those that take over what workers decoded."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # of the journal
    monkeypatch.setattr("tempfile.tempdir", None)
    store, whole = f"{bucket.url}/store", f"{bucket.url}/whole"
    url = bucket.put("a.txt", edges_text(3000, 500))
    flags = ["--format", "edges", "--partitions", "2", *words.split()]
    line = ["convert", url, store, *flags]
    if words == "merge":
        line, flags = ["merge", store], flags[:-1]
        assert run(["convert", url, store, *flags, "--worker-index", "0", "--worker-count", "1"]) == 0
    killed = subprocess.run([sys.executable, "-c", KILLED_LATE, *line, "--resume"], capture_output=True, check=False)
    assert killed.returncode == -9, killed.stderr
    assert ".graphprep-claim" in bucket.files("store")
    if words != "merge":  # whose output nobody else can have
        assert run(line) == 2
    capsys.readouterr()
    assert run([*line, "--resume"]) == 0
    assert "resume: done before: count, shuffle\n" in capsys.readouterr().err
    assert run(["convert", url, whole, *flags]) == 0
    assert stored(bucket, "store") == stored(bucket, "whole")
    assert {name.partition("/")[0] for name in bucket.files()} == {"a.txt", "store", "whole"}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", ["", "--partition-by ldg"])
def test_a_run_that_goes_on_elsewhere_needs_what_the_killed_one_kept(words, bucket, tmp_path, monkeypatch, capsys):
    """Another machine has its own place for temporary files, or is given the one that all see."""
    url, flags = bucket.put("a.txt", edges_text(3000, 500)), ["--format", "edges", "--partitions", "2", *words.split()]
    for name in ("theirs", "ours"):
        (tmp_path / name).mkdir()
    assert run(["convert", url, f"{bucket.url}/whole", *flags]) == 0
    for folder in ("ours", "theirs"):
        line = ["convert", url, f"{bucket.url}/{folder}", *flags, "--resume"]
        theirs = ["--tmp-dir", str(tmp_path / "theirs")]
        killed = subprocess.run([sys.executable, "-c", KILLED_LATE, *line, *theirs], check=False)
        assert killed.returncode == -9
        there = socket.gethostname()
        with monkeypatch.context() as elsewhere:
            elsewhere.setattr(socket, "gethostname", lambda: "worker-8")
            line_here = [*line, "--tmp-dir", str(tmp_path / folder)]
            capsys.readouterr()
            assert run(line_here) == 2  # nobody can tell that it is dead
            assert "where it is gone, --overwrite takes the output over\n" in capsys.readouterr().err
            assert run([*line_here, "--overwrite"]) == 0
        told = (
            f"resume: what the run that began this output on {there} kept is not in {tmp_path}/{folder}, so that all is done again; "
            "with --tmp-dir such files lie in a folder that all machines see\n"
        )
        err = capsys.readouterr().err
        assert (told in err) == (folder == "ours")
        assert ("resume: done before: " in err) == (folder == "theirs")
        assert stored(bucket, folder) == stored(bucket, "whole")


KILLED_FOLDER = """
import os, sys
from graphprep.cli.main import run
from graphprep.storage.write.objects import ObjectTarget
whole = ObjectTarget.put
def put(self, full, data):
    if full.endswith(self._last):
        whole(self, full, data) if sys.argv[1] == "last" else self.url("")  # sends what waits
        os.kill(os.getpid(), 9)
    whole(self, full, data)
ObjectTarget.put = put
run(sys.argv[2:])
"""


@pytest.mark.parametrize(
    ("words", "at"),
    [
        ("export --to edges", "first"),
        ("export --to npy", "last"),
        ("sample --fanouts 2 --seeds IDS", "last"),
        ("partition -p 2 --by hash --assignment-only", "first"),
    ],
)
def test_what_a_killed_run_left_is_replaced_on_demand(words, at, bucket, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    store, out = f"{bucket.url}/store", f"{bucket.url}/a/out"
    assert run(["convert", bucket.put("a.txt", edges_text(300, 50)), store, "--format", "edges"]) == 0
    ids = bucket.put("ids.txt", b"0\n7\n")
    command, *flags = words.replace("IDS", ids).split()
    line = [command, store, out, *flags]
    killed = subprocess.run([sys.executable, "-c", KILLED_FOLDER, at, *line], capture_output=True, check=False)
    assert killed.returncode == -9, killed.stderr
    assert len(bucket.files("a/out")) > 1
    capsys.readouterr()
    assert run(line) == 2
    assert capsys.readouterr().err.endswith(
        f"error: {out}: the output exists\n  fix: choose another name, or give --overwrite\n"
    )
    if at == "first" and "export.json" not in bucket.files("a/out"):  # else an export is there, and replaced with all in it
        strange = bucket.put("a/out/thesis.txt", b"mine")
        assert run([*line, "--overwrite"]) == 2
        bucket.fs.rm_file(strange)
    assert run([*line, "--overwrite"]) == 0
    assert run([command, store, f"{bucket.url}/b", *flags]) == 0
    assert stored(bucket, "a/out") == stored(bucket, "b")
    assert [path for path in bucket.files("a") if not path.startswith("out/")] == []


def test_another_run_that_was_faster_keeps_its_store(bucket, monkeypatch):
    url = bucket.put("a.txt", b"0 1\n")
    whole = StoreBuilder.finish

    def finish(self, *args):
        bucket.put("store/metadata.json", b"theirs")
        return whole(self, *args)

    monkeypatch.setattr(StoreBuilder, "finish", finish)
    with pytest.raises(StorageError, match="exists already"):
        convert([url], f"{bucket.url}/store", ConvertOptions(format="edges"))
    assert bucket.files("store")["metadata.json"] == b"theirs"


def test_an_input_that_changes_is_noticed(bucket):
    url = bucket.put("a.txt", edges_text(400_000))
    with Storage() as storage:
        assert storage.size(url) > 3 << 20
        with storage.open(url, 1 << 20) as handle:
            handle.read(1000)
            bucket.put("a.txt", edges_text(400_000, seed=1))
            with pytest.raises(StorageError) as caught:
                handle.read()
        assert caught.value.message == "the file changed while it was read"
        with pytest.raises(StorageError, match="the file changed while it was read") as caught:
            storage.open(url)
        assert caught.value.place == url
    with Storage() as storage, storage.open(url) as handle:
        assert handle.read() == edges_text(400_000, seed=1)


def test_a_new_run_sees_what_is_there_now(bucket):
    bucket.put("in/a.txt", b"0 1\n")
    options = ConvertOptions(format="edges")
    assert convert([f"{bucket.url}/in"], f"{bucket.url}/1", options).num_edges == {"_N:_E:_N": 1}
    bucket.put("in/b.txt", b"1 2\n")
    assert convert([f"{bucket.url}/in"], f"{bucket.url}/2", options).num_edges == {"_N:_E:_N": 2}


def test_a_store_that_was_cut_short_is_told(bucket):
    url = bucket.put("a.txt", edges_text(5000))
    convert([url], f"{bucket.url}/store", ConvertOptions(format="edges"))
    path = next(path for path in bucket.files("store") if path.endswith("indices.npy"))
    data = bucket.files("store")[path]
    bucket.put(f"store/{path}", data[: len(data) // 2])
    reader = StoreReader(Storage(), f"{bucket.url}/store").array(0, path.removeprefix("part-00000/"))
    for read in (reader.read, lambda: reader.read(4990, 5000), lambda: reader.take(np.array([4999]))):
        with pytest.raises(DataError, match="the manifest says"):
            read()


# ---- failures, in one line


@pytest.mark.parametrize("command", ["convert", "info", "validate", "ids"])
@pytest.mark.parametrize(
    ("name", "module", "package"),
    [
        ("s3://b/a", "s3fs", "s3fs"),
        ("simplecache::s3://b/a", "s3fs", "s3fs"),
        ("zip://a.txt::s3://b/a.zip", "s3fs", "s3fs"),
        ("hdfs://h:1/a", "hdfs_native", "hdfs-native"),
        ("viewfs://h/a", "hdfs_native", "hdfs-native"),
    ],
)
def test_a_missing_extra_is_one_line(command, name, module, package, monkeypatch, capsys, tmp_path):
    registry = sys.modules["fsspec.registry"]
    monkeypatch.setitem(sys.modules, module, None)
    for protocol in ("s3", "s3a", "hdfs", "viewfs"):
        monkeypatch.delitem(registry._registry, protocol, raising=False)
    arguments = {"convert": [name, str(tmp_path / "out")], "ids": [name, "0", "--from", "raw", "--to", "typed"]}
    assert run([command, *arguments.get(command, [name])]) == 2
    protocol = name.rpartition("::")[2].partition("://")[0]
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith(f"error: {name}") and lines[0].endswith(f": the driver for {protocol}:// is not installed")
    assert lines[1:] == [f"  fix: pip install {package}"]
    if command == "convert" and "::" not in name:
        assert run(["convert", str(SAMPLE_DATA / "karate/karate.csv"), name]) == 2
        assert f"pip install {package}" in capsys.readouterr().err


def test_failures_are_told_in_one_line(bucket, capsys, tmp_path):
    karate = str(SAMPLE_DATA / "karate/karate.csv")
    missing = f"{bucket.url}/none.csv"
    cases = {
        ("info", missing): f"error: {missing}: no such file or folder\n  fix: check the spelling of the path\n",
        (
            "convert",
            karate,
            "s3://no-such-bucket-here/store",
        ): "error: s3://no-such-bucket-here/store: there is no such bucket\n",
        ("info", "s3://no-such-bucket-here/a.csv"): "error: s3://no-such-bucket-here/a.csv: ",
        ("convert", karate, bucket.url): f"error: {bucket.url}: ",
    }
    for arguments, message in cases.items():
        code = run(list(arguments))
        err = capsys.readouterr().err
        assert code == (2 if arguments[-1] == bucket.url else 3), err
        assert err[err.index("error: ") :].startswith(message)
        assert "Traceback" not in err


@pytest.mark.parametrize("command", [["info"], ["validate"], ["convert"], ["ids"]])
def test_no_credentials(command, bucket, monkeypatch, capsys, tmp_path):
    import s3fs

    s3fs.S3FileSystem.clear_instance_cache()
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    tail = {"convert": [str(tmp_path / "out")], "ids": ["0", "--from", "raw", "--to", "typed"]}.get(command[0], [])
    url = f"{bucket.url}/a.csv"
    assert run([*command, url, *tail]) == 3
    err = capsys.readouterr().err
    assert "there are no credentials" in err
    assert "fix: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY" in err
    assert len(err.splitlines()) == 2


def test_a_server_that_does_not_answer(aws, monkeypatch, capsys):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "2")  # else the client tries for some 10 seconds
    begin = time.monotonic()
    assert run(["info", "s3://b/a.csv", "--storage-option", "s3.endpoint_url=http://127.0.0.1:9"]) == 3
    assert time.monotonic() - begin < 60
    assert capsys.readouterr().err == (
        "error: s3://b/a.csv/metadata.json: the server does not answer\n"
        "  fix: check the address (AWS_ENDPOINT_URL or --storage-option s3.endpoint_url=URL), and that the server runs\n"
    )


# ---- secrets


@pytest.mark.parametrize("flags", [[], ["-v"], ["-vv"], ["--log-format", "json"]])
def test_no_secret_is_ever_printed(flags, bucket, capsys, tmp_path, monkeypatch):
    hidden = "SENTINELvalue987"
    url = bucket.put("a.csv", b"0 1\n1 2\n")
    bad = bucket.put("bad.csv", b"0 1\n1 z\n")
    store = f"{bucket.url}/store"
    options = [
        *("--storage-option", f"s3.secret={SECRET_KEY}"),
        *("--storage-option", f"s3.key={ACCESS_KEY}"),
        *("--storage-option", f"s3.client_kwargs.aws_session_token={hidden}"),
    ]
    signed = f"http://me:{hidden}@127.0.0.1:9/a.csv?X-Amz-Signature={hidden}&token={hidden}"
    wrong = ["--storage-option", f"s3.endpoint_url=http://me:{hidden}@127.0.0.1:9"]
    unknown = ["--storage-option", f"s3.no_such_secret={hidden}"]
    ids = ["--from", "raw", "--to", "typed"]
    runs = [
        ["convert", url, store, "--format", "edges", *options, *flags],
        ["convert", url, store, "--format", "edges", *options, *flags],
        ["convert", bad, f"{store}2", "--format", "edges", *options, *flags],
        ["convert", signed, f"{store}3", "--format", "edges", *flags],
        ["convert", url, f"{store}4", *unknown, *flags],
        ["info", store, *options],
        ["info", store, *options, "--json"],
        ["info", signed],
        ["info", signed, "--json"],
        ["validate", store, *options, *flags],
        ["validate", signed, *flags],
        ["ids", store, "0", "7", *ids, *options],
        ["ids", signed, "0", *ids],
        ["ids", store, *ids, "--file", signed],
    ]
    if not flags:
        monkeypatch.setenv("GRAPHPREP_DEBUG", "1")
        runs.append(["info", url, *wrong])
    for arguments in runs:
        run(arguments)
        shown = capsys.readouterr()
        for secret in (hidden, SECRET_KEY):
            assert secret not in shown.out + shown.err, arguments
    for path, data in bucket.files("store").items():
        assert hidden.encode() not in data, path
        assert SECRET_KEY.encode() not in data, path
    assert "metadata.json" in bucket.files("store")
