"""Files at paths and URLs: what inputs name, what they hold, and what can go wrong."""

import http.server
import io
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from unittest import mock

import fsspec
import numpy as np
import pytest

from graphprep.convert.pipeline import convert
from graphprep.model.errors import StorageError, UsageError
from graphprep.model.options.convert import ConvertOptions
from graphprep.storage.drivers import parse_options, protocol_of
from graphprep.storage.faults import display_url, plain_words, storage_error
from graphprep.storage.read.urls import Storage, local_path


@pytest.fixture
def storage(tmp_path):
    with Storage(tmp_dir=str(tmp_path)) as made:
        yield made


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "in"
    made.mkdir()
    for name in ("b.csv", "a.csv", "Z.csv", "é.csv", ".hidden", "_SUCCESS", "_tmp.csv"):
        (made / name).write_text(name)
    (made / "sub").mkdir()
    (made / "sub" / "c.csv").write_text("c")
    return made


# ---- expanding


def test_a_folder_in_the_order_of_utf8_paths(storage, folder):
    found = storage.expand([str(folder)])
    assert [Path(file).name for file in found.files] == ["Z.csv", "a.csv", "b.csv", "é.csv"]
    assert found.messages == (f"{folder}: skipped 1 subfolder and 3 names that begin with '.' or '_'",)


def test_a_glob(storage, folder):
    found = storage.expand([f"{folder}/*.csv"])
    assert [Path(file).name for file in found.files] == ["Z.csv", "a.csv", "b.csv", "é.csv"]
    assert found.messages == (f"{folder}/*.csv: skipped 1 name that begins with '.' or '_'",)
    assert storage.expand([f"{folder}/[ab].csv"]).messages == ()
    assert [Path(file).name for file in storage.expand([f"{folder}/s*/?.csv"]).files] == ["c.csv"]
    assert storage.expand([f"{folder}/_tmp.csv"]).files == (f"{folder}/_tmp.csv",)


def test_the_given_order_wins_between_inputs(storage, folder):
    names = [f"{folder}/b.csv", f"{folder}/a.csv", f"{folder}/b.csv"]
    assert storage.expand(names).files == tuple(names)


def test_a_literal_name_wins_over_a_glob(storage, tmp_path):
    for name in ("a[1].csv", "a1.csv", "what?.csv", "x*.csv", "xy.csv"):
        (tmp_path / name).write_text(name)
    for name in ("a[1].csv", "what?.csv", "x*.csv"):
        assert storage.expand([str(tmp_path / name)]).files == (str(tmp_path / name),)


def test_file_urls(storage, folder):
    assert storage.expand([f"file://{folder}/[ab].csv"]).files == (f"file://{folder}/a.csv", f"file://{folder}/b.csv")
    assert storage.read_bytes(f"file://{folder}/a.csv") == b"a.csv"
    assert storage.is_local(f"file://{folder}/a.csv")


def error_of(storage, *inputs):
    with pytest.raises(StorageError) as caught:
        storage.expand(inputs)
    assert caught.value.exit_code == 3
    return str(caught.value)


def test_inputs_that_are_not_there(storage, folder, tmp_path):
    (tmp_path / "empty").mkdir()
    assert (
        error_of(storage, f"{folder}/no.csv")
        == f"{folder}/no.csv: no such file or folder\n  fix: check the spelling of the path"
    )
    assert error_of(storage, f"{folder}/a.csv/x") == (
        f"{folder}/a.csv/x: a part of the path is a file, not a folder\n  fix: check the spelling of the path"
    )
    assert error_of(storage, f"{folder}/*.tsv") == (
        f"{folder}/*.tsv: no file matches the pattern\n  fix: check the pattern, and quote it"
    )
    nothing = "there is no file to read\n  fix: name files, or folders that hold files"
    assert error_of(storage, f"{tmp_path}/empty") == f"{tmp_path}/empty: {nothing}"
    assert error_of(storage) == nothing


def test_an_empty_folder_among_others_is_a_message(storage, folder, tmp_path):
    (tmp_path / "empty").mkdir()
    found = storage.expand([f"{tmp_path}/empty", f"{folder}/a.csv"])
    assert found.files == (f"{folder}/a.csv",)
    assert found.messages == (f"{tmp_path}/empty: holds no file to read",)


def test_a_dangling_link(storage, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    with pytest.raises(StorageError, match="no such file or folder"):
        storage.read_bytes(storage.expand([str(tmp_path / "link")]).files[0])


# ---- streams


def test_stdin_is_spooled_once_and_read_often(tmp_path):
    code = (
        "import sys\nfrom graphprep.storage.read.urls import Storage\n"
        f"with Storage(tmp_dir={str(tmp_path)!r}) as storage:\n"
        "    print(storage.expand(['-']).files, storage.size('-'), storage.is_local('-'))\n"
        "    print(storage.read_bytes('-'), storage.read_bytes('-'), storage.head('-', 2), storage.exists('-'))\n"
    )
    run = subprocess.run([sys.executable, "-c", code], input=b"1 2\n", capture_output=True, check=True)
    assert run.stdout.decode() == "('-',) 4 True\nb'1 2\\n' b'1 2\\n' b'1 ' True\n"
    assert list(tmp_path.iterdir()) == []


def test_stdin_twice_is_refused(storage, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"1 2\n")))
    with pytest.raises(UsageError) as caught:
        storage.expand(["-", "-"])
    assert str(caught.value) == "-: standard input can be read once only\n  fix: name '-' once"


def test_fifos_are_read_like_stdin(tmp_path):
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    writer = threading.Thread(target=lambda: fifo.write_bytes(b"1 2\n" * 100_000))
    writer.start()
    with Storage(tmp_dir=str(tmp_path)) as storage:
        assert storage.expand([str(fifo)]).files == (str(fifo),)
        assert storage.size(str(fifo)) == 400_000
        assert storage.read_bytes(str(fifo)) == storage.read_bytes(str(fifo)) == b"1 2\n" * 100_000
    writer.join()
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]
    assert stat.S_ISFIFO(fifo.stat().st_mode)


def test_a_disk_that_is_full_while_spooling(tmp_path):
    code = (
        "import resource\nfrom graphprep.storage.read.urls import Storage\nfrom graphprep.model.errors import StorageError\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))\n"
        f"with Storage(tmp_dir={str(tmp_path)!r}) as storage:\n"
        "    try: storage.size('-')\n"
        "    except StorageError as error: print(error.message, '|', error.fix)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], input=b"1 2\n" * 100_000, capture_output=True, check=True)
    assert run.stdout.decode() == (
        "the file grew beyond what the system allows | raise the limit (ulimit -f), or choose another place with --tmp-dir\n"
    )
    assert run.stderr == b""
    assert list(tmp_path.iterdir()) == []


# ---- reading


def test_a_folder_cannot_be_opened(storage, folder):
    with pytest.raises(StorageError) as caught:
        storage.open(str(folder))
    assert str(caught.value) == f"{folder}: is a folder, not a file\n  fix: name the files in it"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (PermissionError(13, "x"), "permission denied"),
        (PermissionError("s3 said no"), "permission denied"),
        (OSError(28, "x"), "no space left on device"),
        (OSError(30, "x"), "read-only file system"),
        (OSError(27, "x"), "the file grew beyond what the system allows"),
        (OSError(9999, "odd"), "odd"),
        (FileNotFoundError("bucket/key"), "no such file or folder"),
        (NotImplementedError(), "not possible with this kind of URL"),
        (RuntimeError("first line\nsecond"), "RuntimeError: first line"),
        (ValueError(), "ValueError"),
    ],
)
def test_failures_in_plain_words(error, text):
    found = storage_error(error, "s3://b/a")
    assert (found.place, found.message) == ("s3://b/a", text)
    assert found.fix


@pytest.mark.parametrize(
    ("error", "url", "is_ours"),
    [
        (NameError("name 'os' is not defined"), "s3://b/a", True),
        (AssertionError(), "s3://b/a", True),
        (TypeError("x"), "a.csv", True),
        (KeyError("x"), "a.csv", True),
        (TypeError("a driver's option"), "s3://b/a", False),
        (OSError(5, "x"), "a.csv", False),
        (MemoryError(), "a.csv", True),
    ],
)
def test_mistakes_of_ours_are_no_faults_of_storage(error, url, is_ours):
    with pytest.raises(type(error) if is_ours else StorageError), plain_words(url):
        raise error


def test_memory_that_the_system_refuses_is_no_fault_of_storage():
    with pytest.raises(MemoryError, match="cannot allocate"), plain_words("a.csv"):
        raise OSError(12, "cannot allocate memory")


@pytest.mark.parametrize("size", [-1, 1 << 20])
def test_a_read_that_fails_names_the_file(storage, folder, size):
    handle = storage.open(str(folder / "a.csv"))
    with Path("/proc/self/mem").open("rb", buffering=0) as broken:  # whose first page is no memory
        os.dup2(broken.fileno(), handle.fileno())
    with pytest.raises(StorageError) as caught:
        handle.read(size)
    assert str(caught.value) == f"{folder}/a.csv: the device failed (input/output error)\n  fix: check the disk"


def test_the_bom_is_no_part_of_the_head(storage, tmp_path):
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfabc")
    assert storage.head(str(tmp_path / "a"), 2) == b"ab"
    assert storage.head(str(tmp_path / "a"), 100) == b"abc"


def test_ranges(storage, tmp_path):
    (tmp_path / "a").write_bytes(b"0123456789")
    fsspec.filesystem("memory").pipe("/ranges/a", b"0123456789")
    for url in (str(tmp_path / "a"), "memory://ranges/a"):
        assert storage.read_range(url, 2, 5) == b"234"
        assert storage.read_range(url, 8, 50) == b"89"


def test_numpy_reads_a_plain_file_directly(storage, tmp_path):
    np.save(tmp_path / "a.npy", np.arange(10))
    with storage.open(str(tmp_path / "a.npy")) as handle:
        assert np.array_equal(np.load(handle), np.arange(10))


# ---- places


def test_join():
    storage = Storage()
    assert storage.join("/data/meta", "edges/a.csv") == "/data/meta/edges/a.csv"
    assert storage.join("/data/meta", "/other/a.csv") == "/other/a.csv"
    assert storage.join("meta", "a.csv") == "meta/a.csv"
    assert storage.join("/data", "s3://b/a.csv") == "s3://b/a.csv"
    assert storage.join("s3://b/meta", "../edges/a.csv") == "s3://b/edges/a.csv"
    assert storage.join("s3://b", "a.csv") == "s3://b/a.csv"
    assert storage.join("hdfs://host:9000/meta", "/a.csv") == "hdfs://host:9000/a.csv"
    assert storage.join("memory://meta", "a.csv") == "memory://meta/a.csv"
    assert storage.join("memory://meta", "/a.csv") == "memory:///a.csv"
    assert storage.join("file:///data", "a.csv") == "file:///data/a.csv"
    assert storage.join("http://host/x/", "a.csv") == "http://host/x/a.csv"


def test_what_is_local():
    assert local_path("a/b.csv") == "a/b.csv"
    assert local_path("file:///a/b.csv") == "/a/b.csv"
    assert local_path("C:odd::name") == "C:odd::name"
    assert local_path("s3://b/a") is None
    assert local_path("simplecache::s3://b/a") is None
    assert protocol_of("https://host/a") == "http"
    assert protocol_of("a.csv") == "file"


def test_passwords_and_signatures_are_not_shown():
    assert display_url("ftp://me:secret@host/a.csv") == "ftp://me:…@host/a.csv"
    assert display_url("https://host/a.csv?X-Amz-Signature=abc") == "https://host/a.csv"
    assert display_url("/data/a?b.csv") == "/data/a?b.csv"


# ---- drivers and options


def test_options(monkeypatch):
    parsed = parse_options(
        {
            "anon": "true",
            "s3.endpoint_url": "http://h:1",
            "s3a.key": "abc",
            "s3.client_kwargs.region_name": "x",
            "http.block_size": "5",
            "n": "NaN",
        }
    )
    assert parsed == {
        "": {"anon": True, "n": "NaN"},
        "s3": {"endpoint_url": "http://h:1", "key": "abc", "client_kwargs": {"region_name": "x"}},
        "http": {"block_size": 5},
    }
    hadoop = "dfs.client.failover.max.attempts"
    assert parse_options({f"hdfs.{hadoop}": "7"}) == {"hdfs": {hadoop: "7"}}
    assert Storage({f"hdfs.{hadoop}": "7"})._drivers.options_for("hdfs://h:1/a") == {hadoop: "7"}
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("HADOOP_HOME", raising=False)
    assert Storage()._drivers.options_for("viewfs://h/a") == {hadoop: "4"}
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
    assert Storage()._drivers.options_for("hdfs://h:1/a") == {}
    storage = Storage({"anon": "true", "s3.endpoint_url": "http://h:1", "http.block_size": "5"})
    assert storage._drivers.options_for("s3://b/a") == {"anon": True, "endpoint_url": "http://h:1"}
    assert storage._drivers.options_for("s3a://b/a") == {"anon": True, "endpoint_url": "http://h:1"}
    assert storage._drivers.options_for("https://h/a") == {"anon": True, "block_size": 5}
    assert storage._drivers.options_for("simplecache::s3://b/a") == {"anon": True, "s3": {"endpoint_url": "http://h:1"}}
    assert storage._drivers.options_for("zip://a.csv::s3://b/a.zip") == {"anon": True, "s3": {"endpoint_url": "http://h:1"}}


UNKNOWN = "check the spelling: http://, https://, s3://, hdfs:// and memory:// are known, and whatever else fsspec has"


@pytest.mark.parametrize(
    ("url", "module", "message", "fix"),
    [
        ("http://h/a", "aiohttp", "the driver for http:// is not installed", "pip install aiohttp requests"),
        ("s3://b/a", "s3fs", "the driver for s3:// is not installed", "pip install s3fs"),
        ("hdfs://h:1/a", "hdfs_native", "the driver for hdfs:// is not installed", "pip install hdfs-native"),
        ("gs://b/a", "gcsfs", "the driver for gs:// is not installed", "pip install gcsfs"),
        ("tvs://b/a", "none", "there is no driver for tvs://", UNKNOWN),
        ("x://b/a", "none", "there is no driver for x://", UNKNOWN),
        ("simplecache::x://b/a", "none", "there is no driver for x://", UNKNOWN),
    ],
)
def test_a_missing_driver_is_one_line(url, module, message, fix, monkeypatch):
    registry = sys.modules["fsspec.registry"]
    for name in (module, f"{module}.fsspec", "fsspec.implementations.http"):
        monkeypatch.setitem(sys.modules, name, None)
    for name in ("http", "s3", "hdfs", "gs"):  # what earlier tests of this process loaded
        monkeypatch.delitem(registry._registry, name, raising=False)
    with pytest.raises(UsageError) as caught:
        Storage().open(url)
    assert str(caught.value) == f"{url}: {message}\n  fix: {fix}"
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("text", "message", "fix"),
    [
        ("http:/h/a.csv", "this is no URL: :// follows the scheme", "write http://h/a.csv"),
        ("s3:b/a", "this is no URL: :// follows the scheme", "write s3://b/a"),
        ("file:/a/b", "this is no URL: :// follows the scheme", "write file:///a/b"),
        ("jdbc:mysql://h/db", "there is no driver for jdbc:", "name a file, or a URL such as s3://bucket/key"),
        ("odd:/h/a", "there is no driver for odd:", "name a file, or a URL such as s3://bucket/key"),
    ],
)
def test_what_is_meant_as_a_url_is_no_path(text, message, fix, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k").write_text("0 1\n")
    for inputs, out in ((text, "out"), ("k", text)):
        with pytest.raises(UsageError) as caught:
            convert([inputs], out, ConvertOptions(format="edges"))
        assert str(caught.value) == f"{text}: {message}\n  fix: {fix}; a path of this name is ./{text}"
    assert [one.name for one in tmp_path.iterdir()] == ["k"]


def test_paths_may_have_colons(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("user:item.csv", "2026-01-01T10:00:00", "s3:found"):
        (tmp_path / name).write_text("0 1\n")
        with Storage() as storage:
            storage.load_drivers([name, f"./{name}", f"{name}-new" if name[0] != "s" else name, "c:\\a"])


def test_local_paths_need_neither_fsspec_nor_numpy(tmp_path):
    (tmp_path / "a").write_bytes(b"1 2\n")
    code = (
        "import sys\nfrom graphprep.storage.read.urls import Storage\n"
        f"with Storage() as storage: print(storage.read_bytes(storage.expand([{str(tmp_path)!r}]).files[0]))\n"
        "print([name for name in ('numpy', 'fsspec', 'isal', 'zstandard', 'pyarrow') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert run.stdout == "b'1 2\\n'\n[]\n"


# ---- memory://


def test_memory_urls(storage):
    memory = fsspec.filesystem("memory")
    memory.pipe({"/urls/b.csv": b"1 2\n", "/urls/a.csv": b"3 4\n", "/urls/_x": b"", "/urls/sub/c.csv": b""})
    found = storage.expand(["memory://urls"])
    assert [url.rpartition("/")[2] for url in found.files] == ["a.csv", "b.csv"]
    assert found.messages == ("memory://urls: skipped 1 subfolder and 1 name that begins with '.' or '_'",)
    assert [storage.read_bytes(url) for url in found.files] == [b"3 4\n", b"1 2\n"]
    assert storage.expand(["memory://urls/[b]*"]).files == ("memory:///urls/b.csv",)
    assert storage.size("memory://urls/a.csv") == 4
    assert storage.exists("memory://urls/a.csv")
    assert not storage.exists("memory://urls/no.csv")
    assert storage.is_dir("memory://urls")
    assert not storage.is_local("memory://urls/a.csv")
    with storage.open("memory://urls/a.csv") as one, storage.open("memory://urls/a.csv") as two:
        assert (one.read(2), two.read(), one.read()) == (b"3 ", b"3 4\n", b"4\n")
    for read in (storage.open, storage.size, storage.read_bytes):
        with pytest.raises(StorageError, match=r"memory://urls/no\.csv: no such file or folder"):
            read("memory://urls/no.csv")


# ---- http://


class RangeHandler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder; answers ranges as real servers do."""

    def log_message(self, *_):
        """Stay quiet."""

    def do_GET(self):
        wanted = self.headers.get("Range", "")
        path = Path(self.translate_path(self.path))
        if not wanted.startswith("bytes=") or not path.is_file():
            super().do_GET()
            return
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        data = path.read_bytes()
        body = data[int(first) : int(last) + 1 if last else None]
        self.server.ranges.append(len(body))
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{int(first) + len(body) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class RefusingHandler(http.server.BaseHTTPRequestHandler):
    """Has a status for everyone, the one that the path names."""

    def log_message(self, *_):
        """Stay quiet."""

    def do_GET(self):
        self.send_response(int(self.path.rpartition("/")[2]))
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_HEAD = do_GET


class PlainHandler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder and knows no ranges, like ``python -m http.server``."""

    def log_message(self, *_):
        """Stay quiet."""


@pytest.fixture(params=[RangeHandler, PlainHandler], ids=["ranges", "no ranges"])
def server(request, tmp_path):
    root = tmp_path / "www"
    root.mkdir()
    made = http.server.ThreadingHTTPServer(("127.0.0.1", 0), lambda *args: request.param(*args, directory=str(root)))
    made.ranges, made.knows_ranges = [], request.param is RangeHandler
    made.root = root
    made.url = f"http://127.0.0.1:{made.server_port}"
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join()


def test_http_text_streams(storage, server):
    import gzip

    content = b"".join(b"%d %d\n" % (i, i * i) for i in range(300_000))
    (server.root / "a.csv").write_bytes(content)
    (server.root / "a.csv.gz").write_bytes(gzip.compress(content))
    url = f"{server.url}/a.csv"
    assert storage.expand([url]).files == (url,)
    assert storage.read_bytes(url) == content
    assert storage.read_bytes(f"{url}.gz") == content
    assert storage.head(url, 5) == content[:5]
    assert storage.size(url) == len(content)
    assert storage.read_range(url, 1000, 1010) == content[1000:1010]


def test_http_tables_seek(storage, server):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"a": range(1000)}), server.root / "a.parquet")
    with storage.open(f"{server.url}/a.parquet") as handle:
        assert pq.ParquetFile(handle).read().column("a").to_pylist() == list(range(1000))
    assert bool(server.ranges) == server.knows_ranges  # else it is fetched whole


def test_http_failures(storage, server):
    url = f"{server.url}/no.csv"
    for read in (storage.open, storage.read_bytes):
        with pytest.raises(StorageError) as caught:
            read(url)
        assert str(caught.value) == f"{url}: no such file or folder\n  fix: check the spelling of the path"
    assert error_of(storage, url) == f"{url}: no such file or folder\n  fix: check the spelling of the path"
    refused = "http://127.0.0.1:1/a: connection refused\n  fix: check the address, and that the server runs"
    with pytest.raises(StorageError) as caught:
        storage.read_bytes("http://127.0.0.1:1/a")
    assert str(caught.value) == refused
    assert error_of(storage, "http://127.0.0.1:1/a") == refused


@pytest.mark.parametrize(
    ("status", "message"),
    [(403, "permission denied"), (401, "permission denied"), (410, "no such file or folder"), (500, "500"), (503, "503")],
)
def test_http_statuses(storage, status, message):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), RefusingHandler) as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        url = f"http://127.0.0.1:{made.server_port}/{status}"
        for read in (storage.open, storage.size, lambda url: storage.expand([url])):
            with pytest.raises(StorageError) as caught:
                read(url)
            assert caught.value.place == url
            assert message in caught.value.message
        made.shutdown()
        thread.join()


def test_what_may_not_be_looked_at_is_no_missing_file(tmp_path, monkeypatch):
    (tmp_path / "link").symlink_to("nothing")
    storage = Storage()
    assert storage.exists(str(tmp_path / "link"))
    assert not storage.exists(str(tmp_path / "none"))
    assert not storage.exists(str(tmp_path / "link" / "a"))
    assert not storage.exists("a" * 5000)
    assert not storage.exists("a\0b")
    monkeypatch.setattr(os, "lstat", mock.Mock(side_effect=PermissionError(13, "x")))
    with pytest.raises(StorageError, match="permission denied"):
        storage.exists(str(tmp_path / "locked" / "a"))


def test_a_name_that_no_file_has():
    with Storage() as storage, pytest.raises(StorageError) as caught:
        storage.read_bytes("a\0b.csv")
    assert str(caught.value) == "a\\x00b.csv: no file's name holds a NUL\n  fix: correct the path"
