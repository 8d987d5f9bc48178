"""Every kind of bad input ends in a message with its place, the documented exit code, and nothing left behind."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import resource
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from graphprep.convert.pipeline import convert
from graphprep.model.errors import GraphprepError, StorageError
from graphprep.model.options.convert import ConvertOptions
from graphprep.model.run_options import RunOptions

NODES = b"1,-1,0,1.0\n2,-1,0,1.0\n"
JSON = '{"node_id":1,"node_type":0,"node_weight":1,"edge":[%s]%s}\n'
EDGE = '{"src_id":1,"dst_id":1,"edge_type":0,"weight":1}'


@dataclass(frozen=True)
class Bad:
    """An input, and what convert says of it; ``place`` follows the file's name."""

    format: str
    data: bytes
    place: str
    message: str
    name: str = "in"
    code: int = 1
    options: dict = field(default_factory=dict)


def npy(array, **kwargs):
    file = io.BytesIO()
    np.save(file, array, **kwargs)
    return file.getvalue()


def parquet(**columns):
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    return file.getvalue()


CASES = {
    "edges: too many columns": Bad("edges", b"0 1\n1 2 3\n", ":2:5", "expected 2 columns, found 3"),
    "edges: too few columns": Bad("edges", b"0 1\n1\n", ":2:2", "expected 2 columns, found 1"),
    "edges: one column only": Bad("edges", b"0\n1\n", ":1:1", "1 column; an edge needs two"),
    "edges: a name": Bad("edges", b"0 1\n1 x\n", ":2:3", "field 'dst' must be an integer, found 'x'"),
    "edges: a negative id": Bad("edges", b"0 1\n-1 2\n", ":2:1", "field 'src' must not be negative, found '-1'"),
    "edges: an id beyond 64 bits": Bad("edges", b"0 18446744073709551616\n", ":1:3", "found '18446744073709551616'"),
    "edges: nan as an id": Bad("edges", b"0 1\n1 nan\n", ":2:3", "field 'dst' must be an integer, found 'nan'"),
    "edges: inf as an id": Bad("edges", b"0 1\n1 inf\n", ":2:3", "field 'dst' must be an integer, found 'inf'"),
    "edges: binary garbage": Bad("edges", b"0 1\n\x00\x01\x02\n", ":2:1", "binary data"),
    "edges: quotes that do not close": Bad("edges", b'0,1\n"1,2\n', ":2:1", "quote"),
    "edges: a last line that ends early": Bad("edges", b"0 1\n1 2\n3", ":3:2", "expected 2 columns, found 1"),
    "edges: a weight that overflows": Bad(
        "edges", b"0 1 1e39\n", ":1:5", "1e39", options={"decoder_options": {"weight_col": "2"}}
    ),
    "edges: invalid UTF-8": Bad("edges", b"0 1 a\n1 2 \xff\n", ":2:5", "UTF-8"),
    "edges: nulls in Parquet": Bad("edges", parquet(a=[0, None], b=[1, 2]), ": row 1, column 'a'", "field 'src' is empty"),
    "edges: floats as Parquet ids": Bad(
        "edges", parquet(a=[0.0], b=[1.0]), ": column 'a'", "IDs must be integers or strings, found double"
    ),
    "edges: truncated Parquet": Bad("edges", parquet(a=[0], b=[1])[:-9], "", "cannot be read"),
    "edgelist: a name as id": Bad(
        "edgelist", NODES + b"x,0,1,1\n", ":3:1", "must be an integer from 0 to 18446744073709551615, found 'x'"
    ),
    "edgelist: a negative id": Bad("edgelist", NODES + b"-5,0,1,1\n", ":3:1", "found '-5'"),
    "edgelist: a negative type": Bad("edgelist", b"1,-1,-2,1\n", ":1:6", "found '-2'"),
    "edgelist: a type beyond 31 bits": Bad("edgelist", b"1,-1,2147483648,1\n", ":1:6", "found '2147483648'"),
    "edgelist: a feature that overflows": Bad("edgelist", b"1,-1,0,1,uint8,1,300\n", ":1:18", "found '300'"),
    "edgelist: too few values": Bad("edgelist", b"1,-1,0,1,int8,3,1,2\n", ":1:", "3"),
    "edgelist: an unknown dtype": Bad("edgelist", b"1,-1,0,1,int9,1,1\n", ":1:10", "feature slot 0: unknown dtype 'int9'"),
    "edgelist: an escape at the end": Bad("edgelist", b"1,-1,0,1,binary,1,a\\\n", ":1:", "escape"),
    "edgelist: invalid UTF-8": Bad("edgelist", b"1,-1,0,1,binary,1,\xff\n", ":1:19", "UTF-8"),
    "edgelist: a line that ends early": Bad("edgelist", NODES + b"1,0", ":3:", ""),
    "edgelist: a node twice": Bad("edgelist", NODES + b"1,-1,1,1\n", ":3:1", "node 1 is declared twice, first at {in}:1:1"),
    "edgelist: a missing destination": Bad("edgelist", NODES + b"1,0,7,1\n", ":3:5", "the edge's destination 7 is not a node"),
    "edgelist: a missing source": Bad("edgelist", NODES + b"7,0,1,1\n", ":3:1", "the edge's source 7 is not a node"),
    "json: no object": Bad("json", b"1\n", ":1:1", "a record must be a JSON object, found 1"),
    "json: an array": Bad("json", b"[1]\n", ":1:1", "the records stand in one array"),
    "json: cut off": Bad("json", b'{"node_id":1,\n', ":1:", ""),
    "json: a key is missing": Bad("json", b'{"node_id":1,"node_type":0,"edge":[]}\n', ":1:1", "node_weight"),
    "json: a duplicate key": Bad("json", (JSON % ("", ',"node_id":2')).encode(), ":1:", "node_id"),
    "json: nested absurdly deep": Bad("json", (JSON % ("", ',"x":' + "[" * 5000 + "]" * 5000)).encode(), ":1:", "100"),
    "json: one slot in two groups": Bad(
        "json", (JSON % ("", ',"float_feature":{"0":[1]},"double_feature":{"0":[1]}')).encode(), ":1:", "0"
    ),
    "json: a text as a number": Bad(
        "json",
        (JSON % ("", ',"float_feature":{"0":["1"]}')).encode(),
        ":1:76",
        "group 'float_feature' must hold numbers, found \"1\"",
    ),
    "json: a fraction in an int group": Bad("json", (JSON % ("", ',"int8_feature":{"0":[1.5]}')).encode(), ":1:", "1.5"),
    "json: a missing node": Bad(
        "json",
        (JSON % (EDGE.replace('"dst_id":1', '"dst_id":9'), "")).encode(),
        ":1:73",
        "the edge's destination 9 is not a node",
    ),
    "tsv: a neighbour without a type": Bad("tsv", b"1\t0\t1.0\t\t1\n", ":1:", ""),
    "tsv: quotes that do not close": Bad("tsv", b'1\t0\t1.0\t"f:1\t\n', ":1:", "quote"),
    "gzip: truncated": Bad("edges", gzip.compress(b"0 1\n" * 5000)[:-20], "", "the gzip stream is truncated", name="in.gz"),
    "gzip: corrupt": Bad("edges", gzip.compress(bytes(999))[:-8] + bytes(8), "", "the gzip stream is corrupt", name="in.gz"),
    "bzip2: truncated": Bad("edges", bz2.compress(b"0 1\n" * 5000)[:-20], "", "the bzip2 stream is truncated", name="in.bz2"),
    "xz: truncated": Bad("edges", lzma.compress(b"0 1\n" * 5000)[:-20], "", "the xz stream is truncated", name="in.xz"),
    "zstd: truncated": Bad(
        "edges", zstandard.compress(b"0 1\n" * 5000)[:-5], "", "the zstd stream is truncated", name="in.zst"
    ),
    "an unknown format": Bad("tvs", b"", None, "no decoder named 'tvs'", code=2),
    "a format that cannot be told": Bad(None, b"hello\n", "", "cannot tell the format", code=2),
    "flags that contradict": Bad(
        "edges", b"0 1\n", None, "--missing-node-type belongs to", code=2, options={"missing_node_type": "0"}
    ),
    "a flag of another format": Bad("json", b"", None, "--temporal", code=2, options={"decoder_options": {"temporal": True}}),
    "ids of a format with node records": Bad("json", b"", None, "--ids belongs to formats", code=2, options={"ids": "dense"}),
    "missing nodes of a format without node records": Bad(
        "edges",
        b"0 1\n",
        None,
        "--on-missing-node belongs to formats with node records, not to edges\n  fix: drop --on-missing-node",
        code=2,
        options={"on_missing_node": "drop"},
    ),
    "dense ids that are names": Bad(
        "edges",
        b"a b\n",
        None,
        "--ids dense: raw IDs of node type '_N' are strings\n  fix: drop it, or read integers",
        code=2,
        options={"ids": "dense", "decoder_options": {"id_type": "string"}},
    ),
    "a number of nodes that are names": Bad(
        "edges",
        b"a b\n",
        None,
        "a number of nodes: raw IDs of node type '_N' are strings\n  fix: drop it, or read integers",
        code=2,
        options={"num_nodes": {"": 3}, "decoder_options": {"id_type": "string"}},
    ),
    "dense ids that no memory holds": Bad(
        "edges", b"0 9223372036854775806\n", None, "dense IDs up to", code=4, options={"ids": "dense"}
    ),
    "no memory at all": Bad("edges", b"0 1\n", None, "leaves 0 MiB", code=4, options={"run": RunOptions(memory_limit="8MiB")}),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_bad_input_is_told_with_its_place(case, tmp_path):
    (tmp_path / "tmp").mkdir()
    path = tmp_path / case.name
    path.write_bytes(case.data)
    run = case.options.get("run", RunOptions(tmp_dir=str(tmp_path / "tmp")))
    options = ConvertOptions(**{"format": case.format, **case.options, "run": run})
    with pytest.raises(GraphprepError) as caught:
        convert([str(path)], str(tmp_path / "out"), options)
    text = str(caught.value)
    assert caught.value.exit_code == case.code, text
    assert case.message.replace("{in}", str(path)) in text
    if case.place is not None:
        assert text.startswith(f"{path}{case.place}"), text
    assert "\n  fix: " in text
    assert sorted(one.name for one in tmp_path.iterdir()) == sorted([case.name, "tmp"])
    assert list((tmp_path / "tmp").iterdir()) == []


def test_faulty_records_are_skipped_counted_and_listed(tmp_path):
    (tmp_path / "in").write_bytes(NODES + b"x,0,1,1\n1,0,2,1\n1,-1,0,9\n1,0,7,1\n")
    options = ConvertOptions(format="edgelist", on_error="skip", bad_records=str(tmp_path / "bad.jsonl"))
    summary = convert([str(tmp_path / "in")], str(tmp_path / "out"), options)
    assert (summary.num_skipped, summary.num_dropped_edges, summary.num_edges) == (3, 1, {"0:0:0": 1})
    place = f'{{"place": "{tmp_path}/in:'
    assert (tmp_path / "bad.jsonl").read_text().splitlines() == [
        f'{place}3:1", "reason": "field \'src\' must be an integer from 0 to 18446744073709551615, found \'x\'"}}',
        f'{place}5:1", "reason": "node 1 is declared twice, first at {tmp_path}/in:1:1"}}',
        f'{place}6:5", "reason": "the edge\'s destination 7 is not a node"}}',
    ]


def test_edges_on_a_repeated_nodes_record_go_with_it(tmp_path):
    second = JSON % (EDGE.replace('"weight":1', '"weight":2') + "," + EDGE, "")
    (tmp_path / "in").write_text(JSON % (EDGE, "") + second)
    summary = convert([str(tmp_path / "in")], str(tmp_path / "out"), ConvertOptions(format="json", on_error="skip"))
    assert (summary.num_skipped, summary.num_dropped_edges, summary.num_edges) == (1, 2, {"0:0:0": 1})


def test_one_bad_record_more_than_allowed(tmp_path):
    (tmp_path / "in").write_bytes(b"0 1\nx 1\n1 y\nz 3\n")
    options = ConvertOptions(format="edges", on_error="skip", max_errors=2, bad_records=str(tmp_path / "bad"))
    with pytest.raises(GraphprepError) as caught:
        convert([str(tmp_path / "in")], str(tmp_path / "out"), options)
    assert str(caught.value) == (
        f"{tmp_path}/in:4:1: more than 2 bad records; this one is one too many: field 'src' must be an integer, found 'z'\n"
        "  fix: repair the input, or raise --max-errors"
    )
    assert len((tmp_path / "bad").read_text().splitlines()) == 3
    assert not (tmp_path / "out").exists()


def test_many_bad_lines_in_a_block_cost_no_quadratic_time(tmp_path):
    lines = [b"%d %d\n" % (i, i + 1) if i % 2 else b"x %d\n" % i for i in range(40_000)]
    (tmp_path / "in").write_bytes(b"".join(lines))
    summary = convert([str(tmp_path / "in")], str(tmp_path / "out"), ConvertOptions(format="edges", on_error="skip"))
    assert (summary.num_skipped, summary.num_edges) == (20_000, {"_N:_E:_N": 20_000})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: folder / "none", "no such file or folder"),
        (lambda folder: (folder / "empty").mkdir() or folder / "empty", "there is no file to read"),
    ],
)
def test_input_that_is_not_there(make, message, tmp_path):
    with pytest.raises(StorageError, match=message):
        convert([str(make(tmp_path))], str(tmp_path / "out"), ConvertOptions(format="edges"))


def test_an_empty_file_is_an_empty_graph(tmp_path):
    (tmp_path / "in").write_bytes(b"")
    for name in ("edges", "edgelist", "json", "tsv"):
        summary = convert([str(tmp_path / "in")], str(tmp_path / name), ConvertOptions(format=name, partitions=2))
        assert sum(summary.num_nodes.values()) == 0
        assert (tmp_path / name / "metadata.json").exists()


# ---- the disk


BIG = b"".join(b"%d %d\n" % (i, (i * 7) % 5000) for i in range(200_000))


@pytest.mark.parametrize("limit", [4096, 400_000])
def test_a_full_disk_leaves_nothing(limit, tmp_path):
    """RLIMIT_FSIZE makes large writes fail, of the arrays and (with little memory) of spill files."""
    (tmp_path / "in").write_bytes(BIG)
    done = subprocess.run(
        [sys.executable, "-m", "graphprep", "convert", "in", "out", "--format", "edges", "--tmp-dir", ".", "-q"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
        env=os.environ | {"NUMBA_CACHE_DIR": os.environ.get("NUMBA_CACHE_DIR", "")},
    )
    assert done.returncode == 3, done.stderr
    assert "out" in done.stderr
    assert "Traceback" not in done.stderr
    assert [one.name for one in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize("after", [0, 1, 5, 20, 60])
def test_no_space_at_any_write_leaves_nothing(after, monkeypatch, tmp_path):
    (tmp_path / "in").write_bytes(BIG[: BIG.index(b"\n", 4000) + 1])
    left = [after]

    def full(real):
        def opened(path, mode="r", *args, **kwargs):
            if "w" in mode or "a" in mode or "x" in mode:
                left[0] -= 1
                if left[0] < 0:
                    raise OSError(28, "No space left on device")
            return real(path, mode, *args, **kwargs)

        return opened

    monkeypatch.setattr(Path, "open", full(Path.open))
    monkeypatch.setattr(io, "FileIO", full(io.FileIO))
    options = ConvertOptions(format="edges", partitions=9, layout="both")
    with pytest.raises(StorageError, match="no space left on device"):
        convert([str(tmp_path / "in")], str(tmp_path / "out"), options)
    monkeypatch.undo()
    assert [one.name for one in tmp_path.iterdir()] == ["in"]


def test_a_kill_leaves_no_store_that_looks_whole(tmp_path):
    (tmp_path / "in").write_bytes(BIG * 10)
    code = (
        "import os, sys\n"
        "from graphprep.__main__ import main\n"
        "kill = lambda event, args: event == 'open' and 'part-00025' in str(args[0]) and os.kill(os.getpid(), 9)\n"
        "sys.addaudithook(kill)\n"
        "sys.argv[1:] = 'convert in out --format edges -q --partitions 50'.split()\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, stderr=subprocess.PIPE, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert list(tmp_path.glob(".out.graphprep-*/part-00024/*"))
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.glob(".out.graphprep-*/metadata.json"))
