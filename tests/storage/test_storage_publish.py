"""Stores are shown whole or not at all, whatever fails."""

import json
import os
import subprocess
import sys
from pathlib import Path

import fsspec
import numpy as np
import pytest
import xxhash

from graphprep.model.errors import StorageError, UsageError
from graphprep.storage.read.urls import Storage
from graphprep.storage.write import folders, objects, publish
from graphprep.storage.write.publish import StoreWriter

METADATA = b'{"format": "graphprep-store", "parts": [{"path": "part-00000"}]}\n'
MANIFEST = b'{"arrays": [{"path": "nodes/a/x.npy"}]}'


@pytest.fixture(params=["local", "memory", "s3", "hdfs"])
def out(request, tmp_path):
    if request.param == "s3":
        return request.getfixturevalue("bucket").url + "/publish/store"
    if request.param == "hdfs":
        request.getfixturevalue("hdfs")
        return "hdfs://namenode/publish/store"
    if request.param == "local":
        return str(tmp_path / "made" / "by-us" / "store")
    memory = fsspec.filesystem("memory")
    if memory.exists("/publish"):
        memory.rm("/publish", recursive=True)
    return "memory://publish/store"


def everything(out):
    """List every file where the test writes, by path below it."""
    if "://" in out:
        fs, path = fsspec.core.url_to_fs(out)
        fs.invalidate_cache()
        prefix = path.removesuffix("store")
        return sorted(path.removeprefix(prefix) for path in fs.find(prefix))
    root = Path(out).parents[2]
    return sorted(str(path.relative_to(root / "made/by-us")) for path in root.rglob("*") if path.is_file())


def write(out, overwrite=False, values=(1, 2, 3), fail=None):
    with Storage() as storage, StoreWriter(storage, out, overwrite) as writer:
        array = writer.open_array("part-00000", "nodes/a/x.npy", "int32", (len(values),))
        array.append(np.array(values[:1], np.int32))
        if fail is not None:
            raise fail
        array.append(np.array(values[1:], np.int32))
        entry = array.close()
        writer.write_file("part-00000/manifest.json", MANIFEST)
        assert not storage.is_taken(out) or overwrite or "://" in out
        assert not storage.exists(storage.join(out, "metadata.json")) or overwrite
        writer.publish(METADATA)
        return entry, writer.num_bytes


def read(out, path):
    return Storage().read_bytes(f"{out}/{path}")


def sink_of(out):
    if out.startswith("hdfs://"):
        return folders.FileSink
    return objects.ObjectSink if "://" in out else publish._LocalSink


FILES = ["store/metadata.json", "store/part-00000/manifest.json", "store/part-00000/nodes/a/x.npy"]


def test_a_store_is_what_was_written(out):
    entry, num_bytes = write(out)
    data = read(out, "part-00000/nodes/a/x.npy")
    assert everything(out) == FILES
    assert (entry.path, entry.dtype, entry.shape, entry.num_bytes) == ("nodes/a/x.npy", "int32", (3,), len(data))
    assert entry.xxh3 == xxhash.xxh3_64_hexdigest(data)
    assert num_bytes == len(data) + len(MANIFEST) + len(METADATA)
    assert read(out, "metadata.json") == METADATA


def test_files_are_readable_by_others(tmp_path):
    mask = os.umask(0o022)
    try:
        write(str(tmp_path / "store"))
    finally:
        os.umask(mask)
    assert (tmp_path / "store").stat().st_mode & 0o777 == 0o755


def test_arrays_are_byte_identical_with_numpy(tmp_path):
    chance = np.random.default_rng(0)
    arrays = {
        "a": chance.integers(0, 9, (5, 3)).astype(np.int16),
        "b": np.asfortranarray(chance.random((4, 6))),
        "c": np.zeros((0, 7), np.float32),
        "d": chance.random(10) > 0.5,
        "e": np.arange(10, dtype=">u8"),
        "f": np.arange(20)[::2],
    }
    with Storage() as storage, StoreWriter(storage, str(tmp_path / "s")) as writer:
        for name, array in arrays.items():
            made = writer.open_array("p", f"{name}.npy", array.dtype, array.shape)
            little = array.astype(array.dtype.newbyteorder("<"))
            for start in range(0, len(array), 2):
                made.append(little[start : start + 2])
            made.close()
        writer.publish(METADATA)
    for name, array in arrays.items():
        np.save(tmp_path / "expected.npy", np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"))))
        assert (tmp_path / "s" / "p" / f"{name}.npy").read_bytes() == (tmp_path / "expected.npy").read_bytes()


def test_what_exists_is_not_touched(out):
    write(out)
    with pytest.raises(UsageError) as caught:
        write(out)
    assert str(caught.value) == f"{out}: the output exists\n  fix: choose another name, or give --overwrite"
    assert everything(out) == FILES


def test_a_store_does_not_go_to_stdout():
    with pytest.raises(UsageError) as caught:
        StoreWriter(Storage(), "-")
    assert str(caught.value) == ("-: a store is a folder, and cannot go to stdout\n  fix: name the folder to write, or a URL")


def test_overwrite_replaces_a_store(out):
    write(out)
    write(out, overwrite=True, values=(7, 8))
    assert everything(out) == FILES
    assert read(out, "part-00000/nodes/a/x.npy").endswith(np.array([7, 8], np.int32).tobytes())


def test_overwrite_where_nothing_is(out):
    write(out, overwrite=True)
    assert everything(out) == FILES


def test_overwrite_replaces_nothing_else(out):
    fs, path = fsspec.url_to_fs(f"{out}/metadata.json")
    fs.makedirs(path.rpartition("/")[0], exist_ok=True)
    fs.pipe_file(path, b'{"graph_name": "a chunked graph"}')
    with pytest.raises(UsageError) as caught:
        write(out, overwrite=True)
    assert str(caught.value) == (
        f"{out}: is not a graphprep store; --overwrite replaces nothing else\n  fix: choose another name, or remove it by hand"
    )
    assert everything(out) == ["store/metadata.json"]


def test_overwrite_refuses_folders_files_and_garbage(tmp_path):
    (tmp_path / "folder" / "mine").mkdir(parents=True)
    (tmp_path / "file").write_text("x")
    (tmp_path / "garbage").mkdir()
    (tmp_path / "garbage" / "metadata.json").write_bytes(b"\xff[" * 100)
    for name in ("folder", "file", "garbage"):
        for overwrite in (False, True):
            with pytest.raises(UsageError):
                StoreWriter(Storage(), str(tmp_path / name), overwrite)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder", "garbage"]


def test_the_remedy_for_what_is_no_store(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError) as caught:
        StoreWriter(Storage(), str(tmp_path / "file"))
    assert str(caught.value) == (
        f"{tmp_path}/file: the output exists\n  fix: choose another name: it is no store, and is never replaced"
    )


@pytest.mark.parametrize("below", ["sub", "part-00000/sub/deep"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_store_is_not_written_into_another(below, overwrite, tmp_path):
    store, other = tmp_path / "store", tmp_path / "other"
    for folder, text in ((store, METADATA), (other, b'{"graph_name": "g"}')):
        folder.mkdir()
        (folder / "metadata.json").write_bytes(text)
    with pytest.raises(UsageError) as caught:
        StoreWriter(Storage(), f"{store}/{below}", overwrite)
    assert str(caught.value) == f"{store}/{below}: lies in the store {store}\n  fix: name a folder beside that store"
    StoreWriter(Storage(), f"{other}/{below}", overwrite)


@pytest.mark.parametrize("overwrite", [False, True])
def test_an_empty_folder_is_filled(out, overwrite):
    fs, path = fsspec.url_to_fs(out)
    fs.makedirs(path)
    write(out, overwrite)
    assert everything(out) == FILES


def test_an_empty_folder_keeps_who_may_read_it(tmp_path):
    (tmp_path / "store").mkdir(mode=0o700)
    write(str(tmp_path / "store"))
    assert (tmp_path / "store").stat().st_mode & 0o777 == 0o700


def test_an_empty_folder_that_is_filled_meanwhile_is_not_touched(tmp_path):
    (tmp_path / "store").mkdir()
    with pytest.raises(StorageError), Storage() as storage, StoreWriter(storage, str(tmp_path / "store")) as writer:
        (tmp_path / "store" / "mine").write_text("x")
        writer.publish(METADATA)
    assert [path.name for path in tmp_path.rglob("*")] == ["store", "mine"]


def test_a_disk_that_is_mounted_is_no_output(monkeypatch, tmp_path):
    (tmp_path / "store").mkdir()
    monkeypatch.setattr(Path, "is_mount", lambda self: self.name == "store")
    with pytest.raises(UsageError) as caught:
        StoreWriter(Storage(), str(tmp_path / "store"))
    assert str(caught.value) == (
        f"{tmp_path}/store: is where a disk is mounted, which nothing can take the place of\n  fix: name a folder in it"
    )


@pytest.mark.parametrize("error", [ValueError("a bug"), KeyboardInterrupt(), SystemExit(143)])
def test_leaving_without_publish_removes_everything(out, error):
    with pytest.raises(type(error)):
        write(out, fail=error)
    assert everything(out) == []
    if "://" not in out:
        assert not Path(out).parents[1].exists()


@pytest.mark.parametrize("error", [ValueError("a bug"), KeyboardInterrupt()])
def test_the_old_store_stays_until_the_new_one_is_there(out, error):
    write(out, values=(5, 6))
    with pytest.raises(type(error)):
        write(out, overwrite=True, fail=error)
    assert everything(out) == FILES
    assert read(out, "part-00000/nodes/a/x.npy").endswith(np.array([5, 6], np.int32).tobytes())


@pytest.mark.parametrize("number", [28, 13, 30, 27, 122])
@pytest.mark.parametrize("at", ["array", "file", "metadata"])
def test_writing_that_fails(out, monkeypatch, number, at):
    sink = sink_of(out)
    whole = sink.write
    calls = []

    def fail(self, data):
        calls.append(bytes(data)[:1])
        if (
            (at == "array" and len(calls) == 3)
            or (at == "file" and bytes(data) == MANIFEST)
            or (at == "metadata" and data == METADATA)
        ):
            raise OSError(number, "injected")
        return whole(self, data)

    monkeypatch.setattr(sink, "write", fail)
    with pytest.raises(StorageError) as caught:
        write(out)
    assert caught.value.exit_code == 3
    assert caught.value.place == out
    assert everything(out) == []


def test_the_words_for_a_full_disk(tmp_path, monkeypatch):
    def fail(self, data):
        raise OSError(28, "injected")

    monkeypatch.setattr(publish._LocalSink, "write", fail)
    with pytest.raises(StorageError) as caught:
        write(str(tmp_path / "store"))
    assert str(caught.value) == (f"{tmp_path}/store: no space left on device\n  fix: free some space, or choose another place")
    assert list(tmp_path.iterdir()) == []


def test_a_rename_that_fails_keeps_the_old_store(tmp_path, monkeypatch):
    out = str(tmp_path / "a" / "b" / "store")
    write(out, values=(5, 6))
    monkeypatch.setattr(publish, "_exchange", lambda *_: False)
    renames = []
    whole = Path.rename

    def fail(self, target):
        renames.append(target)
        if len(renames) == 2:
            raise OSError(5, "injected")
        return whole(self, target)

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(StorageError):
        write(out, overwrite=True)
    monkeypatch.undo()
    assert read(out, "part-00000/nodes/a/x.npy").endswith(np.array([5, 6], np.int32).tobytes())
    assert [path.name for path in Path(out).parent.iterdir()] == ["store"]


def test_overwrite_without_the_exchange_of_names(tmp_path, monkeypatch):
    out = str(tmp_path / "store")
    write(out, values=(5, 6))
    monkeypatch.setattr(publish, "_exchange", lambda *_: False)
    write(out, overwrite=True, values=(7, 8))
    assert read(out, "part-00000/nodes/a/x.npy").endswith(np.array([7, 8], np.int32).tobytes())
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


def test_a_system_that_exchanges_no_names(tmp_path, monkeypatch):
    out = str(tmp_path / "store")
    write(out, values=(5, 6))
    monkeypatch.setattr(publish.ctypes, "CDLL", lambda *_, **__: object())
    write(out, overwrite=True, values=(7, 8))
    assert read(out, "part-00000/nodes/a/x.npy").endswith(np.array([7, 8], np.int32).tobytes())
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


def test_what_came_into_being_meanwhile_is_not_touched(tmp_path):
    with pytest.raises(StorageError) as caught, Storage() as storage, StoreWriter(storage, str(tmp_path / "store")) as writer:
        (tmp_path / "store").mkdir()
        writer.publish(METADATA)
    assert str(caught.value) == f"{tmp_path}/store: exists already\n  fix: choose another place"
    assert [path.name for path in tmp_path.iterdir()] == ["store"]
    assert list((tmp_path / "store").iterdir()) == []


def test_an_output_without_a_name():
    with pytest.raises(UsageError, match="the output has no name"):
        StoreWriter(Storage(), "")


def test_overwrite_through_a_link(tmp_path):
    write(str(tmp_path / "store"), values=(5, 6))
    (tmp_path / "link").symlink_to("store")
    write(str(tmp_path / "link"), overwrite=True, values=(7, 8))
    assert (tmp_path / "link").is_symlink()
    assert read(str(tmp_path / "store"), "part-00000/nodes/a/x.npy").endswith(np.array([7, 8], np.int32).tobytes())


def test_a_move_that_fails_on_an_object_store_keeps_the_new_one(monkeypatch):
    memory = fsspec.filesystem("memory")
    if memory.exists("/publish"):
        memory.rm("/publish", recursive=True)
    out = "memory://publish/store"
    write(out)

    def fail(*_, **__):
        raise OSError(5, "injected")

    monkeypatch.setattr(type(memory), "cp_file", fail)
    with pytest.raises(StorageError) as caught:
        write(out, overwrite=True)
    stage = next(path for path in memory.store if path.startswith("/publish/") and path.endswith("metadata.json")).removesuffix(
        "/metadata.json"
    )
    assert caught.value.fix == f"copy the objects of memory:/{stage} there, metadata.json last"
    assert not memory.exists("/publish/store/metadata.json")


def test_parents_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError, match="a part of the path is a file, not a folder"):
        write(str(tmp_path / "file" / "sub" / "store"))
    with pytest.raises(StorageError, match="the name is too long"):
        write(str(tmp_path / ("x" * 300)))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_urls_that_cannot_be_written():
    with pytest.raises(StorageError) as caught:
        write("http://127.0.0.1:1/store")
    assert str(caught.value).startswith("http://127.0.0.1:1/store: ")


def test_a_read_only_target(tmp_path):
    if os.geteuid() == 0:
        out = "/proc/graphprep-store"  # refuses new folders even to root
    else:
        tmp_path.chmod(0o555)
        out = str(tmp_path / "store")
    with pytest.raises(StorageError) as caught:
        write(out)
    assert caught.value.exit_code == 3
    assert caught.value.place == out


def test_a_file_size_limit_of_the_system(tmp_path):
    code = (
        "import resource, sys\nimport numpy as np\n"
        "from graphprep.storage.write.publish import StoreWriter\nfrom graphprep.storage.read.urls import Storage\n"
        "from graphprep.model.errors import StorageError\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))\n"
        "try:\n"
        f"    with Storage() as storage, StoreWriter(storage, {str(tmp_path / 'store')!r}) as writer:\n"
        "        array = writer.open_array('p', 'a.npy', 'int64', (1 << 20,))\n"
        "        for _ in range(16): array.append(np.zeros(1 << 16, np.int64))\n"
        "        array.close()\n"
        "        writer.publish(b'{}')\n"
        "except StorageError as error:\n"
        "    print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == (
        f"{tmp_path}/store: the file grew beyond what the system allows\n  fix: raise the limit (ulimit -f), or choose another place\n"
    )
    assert run.stderr == ""
    assert list(tmp_path.iterdir()) == []


def test_pieces_that_do_not_add_up(tmp_path):
    with Storage() as storage, StoreWriter(storage, str(tmp_path / "store")) as writer:
        array = writer.open_array("p", "a.npy", "int64", (3,))
        with pytest.raises(RuntimeError, match="float64 appended to an array of int64"):
            array.append(np.zeros(1))
        array.append(np.zeros(2, np.int64))
        with pytest.raises(RuntimeError, match="144 bytes written, 152 expected"):
            array.close()
    assert list(tmp_path.iterdir()) == []


def test_many_arrays_at_once_and_reading_back(out):
    with Storage() as storage, StoreWriter(storage, out) as writer:
        arrays = [writer.open_array("p", f"{i}.npy", "int64", (10,)) for i in range(20)]
        for j in range(10):
            for array in arrays:
                array.append(np.array([j]))
        for array in arrays:
            array.close()
        assert np.array_equal(np.load(storage.open(writer.url_of("p/3.npy"))), np.arange(10))
        writer.publish(json.dumps({"format": "graphprep-store"}).encode())
    assert len(everything(out)) == 21
