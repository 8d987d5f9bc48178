"""Remote files below the commands: ranges fetched ahead, deleting, guarded puts, words for failures."""

from __future__ import annotations

import errno
import io
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.model.errors import StorageError
from graphprep.model.shown.texts import display_url, keep_secret, without_secrets
from graphprep.storage.faults import storage_error
from graphprep.storage.read import ranges
from graphprep.storage.read.pins import Pin, check_same
from graphprep.storage.read.ranges import Fetchers, RangeSource, RemoteFile
from graphprep.storage.write import objects


class Content:
    """A remote file in memory, which notes what is fetched."""

    url = "s3://b/a"

    def __init__(self, data):
        self.data = data
        self.pin = Pin(len(data), "1")
        self.fetched = []
        self.lock = threading.Lock()

    def fetch(self, start, stop):
        with self.lock:
            self.fetched.append((start, stop))
        return self.data[start:stop]

    def check(self):
        pass

    def close(self):
        pass


@pytest.fixture(scope="module")
def fetchers():
    made = Fetchers()
    yield made
    made.close()


DATA = bytes(range(256)) * 40


@settings(max_examples=60, deadline=None)
@given(
    ahead=st.integers(1, 5000),
    buffer=st.sampled_from([1, 7, 64, 1000]),
    steps=st.lists(st.tuples(st.sampled_from(["read", "seek", "end", "on"]), st.integers(0, 11_000)), max_size=25),
)
def test_any_reads_are_those_of_the_file(ahead, buffer, steps, fetchers):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranges, "_LEAST_PIECE", 50)
        patch.setattr(ranges, "_SLACK_BYTES", 10)
        ours, real = io.BufferedReader(RangeSource(Content(DATA), fetchers, ahead), buffer), io.BytesIO(DATA)
        for what, number in steps:
            if what == "read":
                assert ours.read(number) == real.read(number)
            elif what == "seek":
                assert ours.seek(number) == real.seek(number)
            elif what == "end":
                assert ours.seek(-(number % len(DATA)), io.SEEK_END) == real.seek(-(number % len(DATA)), io.SEEK_END)
            else:
                assert ours.read(50) == real.read(50)
            assert ours.tell() == real.tell()
        ours.close()


def test_reading_on_fetches_ahead_and_jumping_does_not(fetchers):
    content = Content(bytes(40 << 20))
    source = RangeSource(content, fetchers, 8 << 20)
    buffer = bytearray(1 << 18)
    for at in (39 << 20, 3 << 20, 20 << 20):
        source.seek(at)
        source.readinto(buffer)
    assert sum(stop - start for start, stop in content.fetched) == 3 << 18
    content.fetched.clear()
    source.seek(0)
    while source.tell() < 16 << 20:
        source.readinto(buffer)
    for future in source._pending:
        future.result()
    furthest = max(stop for _, stop in content.fetched)
    assert (20 << 20) < furthest <= (26 << 20)
    assert len(content.fetched) == len(set(content.fetched))


def test_a_failed_fetch_is_told_where_it_is_read(fetchers):
    content = Content(DATA)

    def fail(start, stop):
        if start:
            raise StorageError("lost", place="s3://b/a")
        return DATA[:stop]

    content.fetch = fail
    source = io.BufferedReader(RangeSource(content, fetchers, 1 << 20), 100)
    assert source.read(10) == DATA[:10]
    with pytest.raises(StorageError, match="lost"):
        source.read()


def test_another_state_of_a_file_is_refused():
    check_same(Pin(3, "a"), Pin(3, "a"), "s3://b/a")
    with pytest.raises(StorageError) as caught:
        check_same(Pin(3, "a"), Pin(4, "b"), "s3://b/a")
    assert str(caught.value) == (
        "s3://b/a: the file changed while it was read (3 bytes, now 4)\n  fix: run again when it is complete"
    )


class Refusing:
    """A store that cannot remove many objects at once, as older ones of the S3 family cannot."""

    def __init__(self):
        self.removed = []

    def rm(self, paths):
        raise OSError(errno.EINVAL, "MissingContentMD5")

    def rm_file(self, path):
        if path == "b/2":
            raise FileNotFoundError(path)
        self.removed.append(path)


def test_objects_are_removed_one_by_one_where_they_must():
    fs = Refusing()
    objects._delete(fs, ["b/1", "b/2", "b/3"])
    assert fs.removed == ["b/1", "b/3"]


class ServerError(Exception):
    """What botocore raises."""

    def __init__(self, code):
        super().__init__(f"An error occurred ({code})")
        self.response = {"Error": {"Code": code}}


class Guarded:
    """An S3 file system whose server answers a guarded put with an error of its own."""

    protocol = ("s3", "s3a")

    def __init__(self, error):
        self.error = error
        self.put = []

    def pipe_file(self, path, data, mode="overwrite"):
        if mode == "create":
            raise self.error
        self.put.append((path, data))


def caused(error, code):
    error.__cause__ = ServerError(code)
    return error


def test_a_file_that_changed_is_known_where_the_driver_fails_over_the_answer():
    failed = TypeError("argument of type 'NoneType' is not iterable")
    failed.__cause__ = caused(OSError(errno.EINVAL, None), "PreconditionFailed")

    class Failing:
        protocol, async_impl = "s3", False

        def info(self, target):
            return {"size": 3, "ETag": "1"}

        def open(self, target, mode, **_):
            raise failed

    with pytest.raises(StorageError, match="s3://b/a: the file changed while it was read"):
        RemoteFile(Failing(), "b/a", "s3://b/a").fetch(0, 3)


def test_a_guarded_put_that_meets_an_object_is_known_by_its_cause():
    for error in (FileExistsError("x"), caused(OSError(errno.EINVAL, "x"), "PreconditionFailed")):
        with pytest.raises(FileExistsError):
            objects.create_object(Guarded(error), "b/metadata.json", b"{}")
    fs = Guarded(caused(OSError(errno.ENOSYS, "x"), "NotImplemented"))
    objects.create_object(fs, "b/metadata.json", b"{}")
    assert fs.put == [("b/metadata.json", b"{}")]
    with pytest.raises(PermissionError):
        objects.create_object(Guarded(caused(PermissionError("x"), "AccessDenied")), "b/metadata.json", b"{}")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (caused(FileNotFoundError("x"), "NoSuchBucket"), "there is no such bucket"),
        (caused(FileNotFoundError("x"), "NoSuchKey"), "no such file or folder"),
        (caused(PermissionError("x"), "AccessDenied"), "permission denied"),
        (caused(PermissionError("x"), "403"), "permission denied"),
        (caused(PermissionError("x"), "InvalidAccessKeyId"), "the server does not know the access key"),
        (caused(PermissionError("x"), "SignatureDoesNotMatch"), "the server refuses the signature: the secret key is wrong"),
        (caused(PermissionError("x"), "ExpiredToken"), "the credentials have expired"),
        (caused(OSError(errno.EIO, "strange\nwords"), "Strange"), "strange\\nwords"),
        (caused(OSError(errno.EBUSY, "x"), "SlowDown"), "the server asks for fewer requests"),
        (caused(TypeError("no words"), "PreconditionFailed"), "exists already, or changed meanwhile"),
        (type("NoCredentialsError", (Exception,), {})("Unable"), "there are no credentials"),
        (type("EndpointConnectionError", (Exception,), {})("Could not"), "the server does not answer"),
        (type("FileExpired", (OSError,), {})(errno.EBUSY, "x"), "the file changed while it was read"),
    ],
)
def test_what_object_stores_answer_in_plain_words(error, message):
    found = storage_error(error, "s3://b/a")
    assert (found.place, found.message, found.exit_code) == ("s3://b/a", message, 3)
    assert found.fix


def test_what_is_secret_is_not_shown():
    keep_secret("s3cr3t-value")
    keep_secret("abc")  # too short: it would hide ordinary words
    assert display_url("s3://b/s3cr3t-value/abc") == "s3://b/***/abc"
    assert display_url("https://me:pw@h/a?X-Amz-Signature=1&b=2") == "https://me:…@h/a"
    assert display_url("abfs://c/a?sig=1234&x=y") == "abfs://c/a?sig=…&x=y"
    assert without_secrets("s3://b/x?password=a:b: there is none") == "s3://b/x?password=…: there is none"
    assert without_secrets("?token=a: &key=b:c&x=d 'sig?sig=e:'") == "?token=…: &key=…&x=d 'sig?sig=…:'"
    assert storage_error(ValueError("Invalid s3cr3t-value"), "s3://b/a").message == "ValueError: Invalid ***"
