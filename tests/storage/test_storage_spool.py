"""Streams are read while they come, as often as wanted, and never hold anybody up."""

import errno
import gzip
import io
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from graphprep.model.errors import StorageError
from graphprep.storage.read import spool as spools
from graphprep.storage.read.spool import Spool, stored_stdin
from graphprep.storage.read.urls import Storage


@pytest.fixture
def pipe(tmp_path):
    """A spool that copies from a pipe, and the end to write to."""
    read_end, write_end = os.pipe()
    source = os.fdopen(read_end, "rb", buffering=0)
    spool = Spool(source, "-", tmp_path / "stream", owned=True)
    writer = os.fdopen(write_end, "wb", buffering=0)
    yield spool, writer
    writer.close()
    spool.close()
    assert source.closed
    assert not [thread for thread in threading.enumerate() if thread.name == "graphprep-spool"]


def test_what_has_come_is_read_before_the_end(pipe):
    spool, writer = pipe
    with spool.open() as first, spool.open() as second:
        writer.write(b"abc")
        assert first.read1(10) == b"abc"
        assert not spool.is_complete
        writer.write(b"def")
        assert first.read(3) == b"def"
        assert second.read(4) == b"abcd"
        writer.close()
        assert (first.read(), second.read()) == (b"", b"ef")
        assert (second.seek(-2, io.SEEK_END), second.read()) == (4, b"ef")
        assert (second.seek(1), second.tell(), second.read()) == (1, 1, b"bcdef")
    assert spool.wait() == 6
    assert spool.is_complete


def test_what_a_buffer_held_comes_first(tmp_path):
    """Behind it, the system copies from pipe to file by itself."""
    read_end, write_end = os.pipe()
    with os.fdopen(read_end, "rb") as source, os.fdopen(write_end, "wb", buffering=0) as writer:
        writer.write(b"abcd")
        assert source.peek()[:2] == b"ab"
        spool = Spool(source, "-", tmp_path / "stream", owned=False)
        writer.write(b"efg")
        assert spool.wait(7) == 7
        writer.write(b"hi")
        assert spool.wait(9) == 9
        writer.close()
        assert spool.wait() == 9
        spool.close()
    assert (tmp_path / "stream").read_bytes() == b"abcdefghi"


@pytest.mark.skipif(not hasattr(os, "splice"), reason="the system cannot copy from pipe to file")
@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOSPC])
def test_where_the_system_cannot_copy_the_thread_does(pipe, monkeypatch, code):
    def fail(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "splice", fail)
    spool, writer = pipe
    writer.write(b"abc")
    assert spool.wait(3) == 3
    writer.write(b"def")
    if code == errno.EINVAL:
        assert spool.wait(6) == 6
    else:
        with pytest.raises(StorageError, match="no space left") as found:
            spool.wait()
        assert "--tmp-dir" in found.value.fix


def test_nobody_has_to_wait_for_long(pipe):
    spool, writer = pipe
    writer.write(b"abc")
    assert spool.wait(3) == 3
    assert spool.wait(4, most_s=0.01) == 3
    writer.close()
    assert spool.wait(4, most_s=10) == 3


def test_a_signal_that_another_thread_got_ends_a_wait(pipe):
    spool, writer = pipe

    class EndedError(Exception):
        pass

    def end(number, frame):
        raise EndedError

    before = signal.signal(signal.SIGUSR1, end)
    sender = threading.Timer(0.1, signal.pthread_kill, (spool._thread.ident, signal.SIGUSR1))
    rescue = threading.Timer(20, writer.close)  # else this test would wait forever
    try:
        for timer in (sender, rescue):
            timer.start()
        with pytest.raises(EndedError):
            spool.wait()
        assert not writer.closed
    finally:
        for timer in (sender, rescue):
            timer.cancel()
            timer.join()
        signal.signal(signal.SIGUSR1, before)


def test_seeking_from_the_end_waits_for_it(pipe):
    spool, writer = pipe
    writer.write(b"abc")
    threading.Timer(0.05, lambda: (writer.write(b"defg"), writer.close())).start()
    with spool.open() as handle:
        assert handle.seek(-1, io.SEEK_END) == 6
        assert handle.read() == b"g"


def test_many_readers_of_a_stream_in_random_pieces(pipe):
    spool, writer = pipe
    rng = random.Random(1)
    data = rng.randbytes(3_000_000)
    found = {}

    def read(seed):
        draws = random.Random(seed)
        with spool.open() as handle:
            pieces = []
            while piece := handle.read(draws.randrange(1, 200_000)):
                pieces.append(piece)
        found[seed] = b"".join(pieces)

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    at = 0
    while at < len(data):
        at += writer.write(data[at : at + rng.randrange(1, 100_000)])
    writer.close()
    for thread in threads:
        thread.join(20)
    assert [found[seed] == data for seed in range(4)] == [True] * 4


def test_closing_leaves_no_file_open(tmp_path):
    before = len(list(Path("/proc/self/fd").iterdir()))
    read_end, write_end = os.pipe()
    with os.fdopen(write_end, "wb"):
        Spool(os.fdopen(read_end, "rb"), "-", tmp_path / "stream", owned=True).close()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_closing_does_not_wait_for_more(pipe):
    spool, writer = pipe
    writer.write(b"abc")
    assert spool.wait(3) == 3
    begin = time.monotonic()
    spool.close()
    spool.close()
    assert time.monotonic() - begin < 5


@pytest.mark.parametrize("method", ["readinto", "readinto1"])
def test_a_source_that_fails_is_named_by_who_reads_that_far(tmp_path, method):
    answers = iter([b"abc"])

    class Failing:
        def read(self, buffer):
            try:
                piece = next(answers)
            except StopIteration:
                raise OSError(5, "Input/output error") from None
            buffer[: len(piece)] = piece
            return len(piece)

    source = Failing()
    setattr(source, method, source.read)
    spool = Spool(source, "the source", tmp_path / "stream", owned=False)
    with spool.open() as handle:
        assert handle.read1(3) == b"abc"
        for _ in range(2):
            with pytest.raises(StorageError) as caught:
                handle.read()
            assert str(caught.value) == "the source: the device failed (input/output error)\n  fix: check the disk"
    with pytest.raises(StorageError):
        spool.wait()
    assert not spool.is_complete
    spool.close()


def test_a_stream_that_lies_in_memory(tmp_path):
    spool = Spool(io.BytesIO(b"1 2\n" * 1_000_000), "-", tmp_path / "stream", owned=False)
    assert spool.wait() == 4_000_000
    with spool.open() as handle:
        assert handle.read() == b"1 2\n" * 1_000_000
    spool.close()


# ---- standard input


def run(code, tmp_path, **stdin):
    head = f"import sys, os\nfrom graphprep.storage.read.urls import Storage\nwith Storage(tmp_dir={str(tmp_path)!r}) as storage:\n"
    command = [sys.executable, "-c", head + "".join(f"    {line}\n" for line in code)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, **stdin).stdout


def test_a_file_as_stdin_is_read_where_it_lies(tmp_path):
    (tmp_path / "in").write_bytes(b"1 2\n3 4\n")
    code = ["print(storage.is_arriving('-'), storage.size('-'), storage.read_bytes('-'), storage.read_bytes('-'))"]
    code += [f"print(os.listdir({str(tmp_path)!r}), os.path.samefile(storage.local_path('-'), {str(tmp_path / 'in')!r}))"]
    with (tmp_path / "in").open("rb") as file:
        assert run(code, tmp_path, stdin=file) == "False 8 b'1 2\\n3 4\\n' b'1 2\\n3 4\\n'\n['in'] True\n"


def test_a_file_as_stdin_of_which_some_was_read(tmp_path):
    (tmp_path / "in").write_bytes(b"1 2\n3 4\n")
    with (tmp_path / "in").open("rb", buffering=0) as file:
        file.read(4)
        assert run(["print(storage.read_bytes('-'), storage.size('-'))"], tmp_path, stdin=file) == "b'3 4\\n' 4\n"


def test_what_is_no_file():
    assert stored_stdin(io.BytesIO()) is None
    assert stored_stdin(object()) is None
    read_end, write_end = os.pipe()
    with os.fdopen(read_end, "rb") as source:
        assert stored_stdin(source) is None
    os.close(write_end)


def test_a_compressed_pipe_is_read_while_it_comes(tmp_path):
    text = b"".join(b"%d %d\n" % (i, i * 7919 % 100_003) for i in range(300_000))
    packed = gzip.compress(text, 1)
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    half = threading.Event()

    def write():
        with fifo.open("wb") as file:
            file.write(packed[: len(packed) // 2])
            file.flush()
            half.wait(20)
            file.write(packed[len(packed) // 2 :])

    thread = threading.Thread(target=write)
    thread.start()
    with Storage(tmp_dir=str(tmp_path)) as storage, storage.open(str(fifo)) as handle:
        head = handle.read(len(text) // 4)
        assert storage.is_arriving(str(fifo))
        assert storage.local_path(str(fifo)) is None
        half.set()
        assert head + handle.read() == text
        assert storage.size(str(fifo)) == len(packed)
        assert storage.local_path(str(fifo)) is not None
        handle.seek(0)
        assert handle.read(100) == text[:100]
    thread.join(10)
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_a_pipe_is_made_wide():
    read_end, write_end = os.pipe()
    try:
        spools._widen_pipe(read_end)
        os.set_blocking(write_end, False)
        assert os.write(write_end, bytes(1 << 19)) == 1 << 19 if sys.platform == "linux" else True
    finally:
        os.close(read_end)
        os.close(write_end)
