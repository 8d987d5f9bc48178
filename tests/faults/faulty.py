"""Storage that fails: requests are lost before or after they had an effect, come short, or late, by a seed."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, ClassVar

from fsspec import AbstractFileSystem
from remote_places import StubHdfs


class ServerError(OSError):
    """What an object store answers where it is busy."""

    def __init__(self) -> None:
        super().__init__("Please reduce your request rate")
        self.response = {"Error": {"Code": "SlowDown"}}


@dataclass
class Schedule:
    """Which requests fail, and how: the same for a seed whatever the order in which threads send them."""

    seed: int
    is_on: bool = False
    num_faults: int = 0
    _counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _total: int = 0

    def __post_init__(self) -> None:
        chance = random.Random(self.seed)
        self.rate = chance.choice([0.02, 0.1, 0.3])
        self.late_rate = chance.choice([0.0, 0.1])
        self.fatal_rate = chance.choice([0.0, 0.0, 0.05])
        self.down_after = chance.choice([None, None, None, chance.randrange(400)])  # requests: then none succeeds

    def draw(self, request: str, path: str) -> random.Random | None:
        """Return what decides about a request; None where nothing happens to any. Raises where the server is down."""
        with self._lock:
            if not self.is_on:
                return None
            self._counts[request, path] += 1
            self._total += 1
            if self.down_after is not None and self._total > self.down_after:
                self.num_faults += 1
                raise ConnectionResetError("the server is gone")
            return random.Random(f"{self.seed} {request} {path} {self._counts[request, path]}")

    def fail(self, chance: random.Random | None, rate: float) -> None:
        """Raise at a rate, or be late."""
        if chance is None:
            return
        if chance.random() < self.late_rate:
            time.sleep(chance.random() * 0.004)
        if chance.random() < rate:
            self.num_faults += 1
            if chance.random() < self.fatal_rate:
                raise PermissionError("not you")
            raise chance.choice([ConnectionResetError("lost"), TimeoutError("late"), ServerError()])

    def around(self, request: str, path: str, work: Any) -> Any:
        """Do work that may fail before it or after it."""
        chance = self.draw(request, path)
        self.fail(chance, self.rate / 2)
        result = work()
        self.fail(chance, self.rate / 2)
        return result

    def shortened(self, request: str, path: str, data: bytes) -> bytes:
        """Return data, or its beginning."""
        chance = self.draw(request, path)
        if chance is not None and data and chance.random() < self.rate:
            self.num_faults += 1
            return data[: chance.randrange(len(data))]
        return data


class FaultyStore(AbstractFileSystem):
    """An object store whose driver is one of the asynchronous ones; objects lie in ``objects``."""

    protocol = "faulty"
    cachable = False
    async_impl = True  # ranges of one file are fetched several at a time
    objects: ClassVar[dict[str, tuple[bytes, int]]] = {}
    schedule: ClassVar[Schedule] = Schedule(0)
    _numbers: ClassVar[list[int]] = [0]

    def _found(self, path: str) -> dict[str, Any]:
        path = self._strip_protocol(path)
        if path in self.objects:
            data, number = self.objects[path]
            return {"name": path, "type": "file", "size": len(data), "ETag": str(number)}
        if any(name.startswith(f"{path}/") for name in self.objects):
            return {"name": path, "type": "directory", "size": 0}
        raise FileNotFoundError(path)

    def put(self, path: str, data: bytes) -> None:
        self._numbers[0] += 1
        self.objects[self._strip_protocol(path)] = (data, self._numbers[0])

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        return self.schedule.around("info", path, lambda: self._found(path))

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        path = self._strip_protocol(path)

        def names() -> list[str]:
            inside = {name[len(path) + 1 :].partition("/")[0] for name in self.objects if name.startswith(f"{path}/")}
            return sorted(f"{path}/{name}" for name in inside) or [self._found(path)["name"]]

        found = self.schedule.around("ls", path, names)
        return [self._found(name) for name in found] if detail else found

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        self._found(path)
        data = self.schedule.around("get", path, lambda: self.objects[self._strip_protocol(path)][0][start:end])
        return self.schedule.shortened(f"body {start}", path, data) if start is not None else data

    def pipe_file(self, path: str, value: bytes, **_: Any) -> None:
        self.schedule.around("put", path, lambda: self.put(path, bytes(value)))

    def cp_file(self, path1: str, path2: str, **_: Any) -> None:
        self._found(path1)
        self.schedule.around("copy", path2, lambda: self.put(path2, self.objects[self._strip_protocol(path1)][0]))

    def rm_file(self, path: str) -> None:
        path = self._strip_protocol(path)
        self._found(path)
        self.schedule.around("delete", path, lambda: self.objects.pop(path, None))

    def _rm(self, path: str) -> None:
        self.rm_file(path)

    def rm(self, path: Any, recursive: bool = False, maxdepth: int | None = None) -> None:
        for one in [path] if isinstance(path, str) else path:
            for name in self.find(one) if recursive else [one]:
                self.rm_file(name)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        pass

    def open(self, path: str, mode: str = "rb", autocommit: bool = True, **_: Any) -> Any:
        path = self._strip_protocol(path)
        if mode == "wb":
            return _Upload(self, path, autocommit)
        return _Object(self, path, self.info(path))


class _Object:
    """An object that is open for reading, as s3fs has it."""

    def __init__(self, fs: FaultyStore, path: str, details: dict[str, Any]) -> None:
        self.fs, self.path, self.details = fs, path, details

    def _fetch_range(self, start: int, stop: int) -> bytes:
        chance = self.fs.schedule.draw(f"range {start}", self.path)
        self.fs.schedule.fail(chance, self.fs.schedule.rate)
        return self.fs.schedule.shortened(f"body {start}", self.path, self.fs.objects[self.path][0][start:stop])

    def close(self) -> None:
        pass


class _Upload:
    """An upload in parts, not to be seen before ``commit``."""

    def __init__(self, fs: FaultyStore, path: str, autocommit: bool) -> None:
        self.fs, self.path, self.autocommit, self.closed = fs, path, autocommit, False
        self.data = bytearray()

    def write(self, data: bytes) -> int:
        self.fs.schedule.around(f"part {len(self.data)}", self.path, lambda: self.data.extend(data))
        return len(data)

    def close(self) -> None:
        if not self.closed and self.autocommit:
            self.commit()
        self.closed = True

    def commit(self) -> None:
        self.fs.schedule.around("complete", self.path, lambda: self.fs.put(self.path, bytes(self.data)))

    def discard(self) -> None:
        self.data.clear()


class FaultyHdfs(StubHdfs):
    """The stub of HDFS, whose requests fail."""

    schedule: ClassVar[Schedule] = Schedule(0)

    def info(self, path: str, **options: Any) -> Any:
        return self.schedule.around("info", path, lambda: StubHdfs.info(self, path, **options))

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        self.schedule.around("mkdir", path, lambda: StubHdfs.makedirs(self, path, exist_ok))

    def mv(self, path1: str, path2: str, **options: Any) -> None:
        self.schedule.around("mv", path2, lambda: StubHdfs.mv(self, path1, path2, **options))

    def rm(self, path: str, recursive: bool = False, maxdepth: int | None = None) -> None:
        self.schedule.around("rm", path, lambda: StubHdfs.rm(self, path, recursive, maxdepth))

    def open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        return _HdfsFile(self.schedule, path, self.schedule.around("open", path, lambda: self._open(path, mode, **options)))


class _HdfsFile:
    """A file that is open there."""

    def __init__(self, schedule: Schedule, path: str, file: Any) -> None:
        self.schedule, self.path, self.file = schedule, path, file

    def read(self, size: int = -1) -> bytes:
        chance = self.schedule.draw("read", self.path)
        self.schedule.fail(chance, self.schedule.rate)
        return self.file.read(size)

    def seek(self, *args: int) -> int:
        return self.file.seek(*args)

    def tell(self) -> int:
        return self.file.tell()

    def write(self, data: bytes) -> int:
        return self.schedule.around("write", self.path, lambda: self.file.write(data))

    def close(self) -> None:
        self.schedule.around("close", self.path, self.file.close)

    def __enter__(self) -> _HdfsFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
