"""Remote places for tests: buckets of a local S3 server, and a file system that behaves like HDFS."""

from __future__ import annotations

import itertools
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlparse

from fsspec import AbstractFileSystem

ACCESS_KEY = "AKIAGRAPHPREPTEST"
SECRET_KEY = "SECRETsentinel0123456789"
_numbers = itertools.count()


@dataclass(frozen=True)
class Bucket:
    """A bucket of its own for one test."""

    endpoint: str
    name: str
    fs: Any

    @classmethod
    def make(cls, endpoint: str) -> Bucket:
        """Make a bucket."""
        import s3fs

        name = f"graphs-{next(_numbers)}"
        fs = s3fs.S3FileSystem(endpoint_url=endpoint, key=ACCESS_KEY, secret=SECRET_KEY, use_listings_cache=False)
        fs.call_s3("create_bucket", Bucket=name)
        return cls(endpoint, name, fs)

    @property
    def url(self) -> str:
        """Return ``s3://name``."""
        return f"s3://{self.name}"

    def put(self, path: str, data: bytes) -> str:
        """Put an object and return its URL."""
        self.fs.pipe_file(f"{self.name}/{path}", data)
        return f"{self.url}/{path}"

    def put_folder(self, folder: Path, path: str) -> str:
        """Put all files of a folder and return the URL of the prefix."""
        for file in folder.rglob("*"):
            if file.is_file():
                self.put(f"{path}/{file.relative_to(folder)}", file.read_bytes())
        return f"{self.url}/{path}"

    def files(self, path: str = "") -> dict[str, bytes]:
        """Return the objects below a prefix by their path in it."""
        prefix = f"{self.name}/{path}".rstrip("/")
        found = self.fs.find(prefix)
        return {name.removeprefix(prefix + "/"): self.fs.cat_file(name) for name in found}

    def uploads(self) -> list[str]:
        """Return the keys of uploads that were begun and neither completed nor aborted."""
        found = self.fs.call_s3("list_multipart_uploads", Bucket=self.name)
        return [upload["Key"] for upload in found.get("Uploads", [])]


class StubHdfs(AbstractFileSystem):
    """HDFS as hdfs-native shows it: synchronous, files seen as soon as they are created, a folder renamed in one step.

    It lies in the local folder ``root``. ``fail_writes`` > 0 makes that many writes fail, as when data nodes are lost.
    """

    protocol = "hdfs"
    root_marker = "/"
    cachable = False
    root: ClassVar[Path]
    fail_writes: ClassVar[int] = 0

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return urlparse(path).path.rstrip("/") or cls.root_marker

    def unstrip_protocol(self, name: str) -> str:
        return f"hdfs://namenode{self._strip_protocol(name)}"

    @staticmethod
    def _get_kwargs_from_urls(path: str) -> dict[str, Any]:
        return {"host": urlparse(path).hostname}

    def _local(self, path: str) -> Path:
        return self.root / self._strip_protocol(path).lstrip("/")

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        local = self._local(path)
        found = local.stat()
        kind = "directory" if local.is_dir() else "file"
        name = "/" + str(local.relative_to(self.root))
        return {
            "name": name,
            "type": kind,
            "size": 0 if local.is_dir() else found.st_size,
            "modification_time": found.st_mtime_ns,
        }

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        local = self._local(path)
        found = [local] if local.is_file() else sorted(local.iterdir())
        infos = [self.info("/" + str(one.relative_to(self.root))) for one in found]
        return infos if detail else [info["name"] for info in infos]

    def mkdir(self, path: str, create_parents: bool = True, **_: Any) -> None:
        self._local(path).mkdir(parents=create_parents, exist_ok=True)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        self._local(path).mkdir(parents=True, exist_ok=exist_ok)

    def mv(self, path1: str, path2: str, **_: Any) -> None:
        if self._local(path2).exists():
            raise FileExistsError(path2)
        self._local(path1).rename(self._local(path2))

    def rmdir(self, path: str) -> None:
        self._local(path).rmdir()

    def rm(self, path: str, recursive: bool = False, maxdepth: int | None = None) -> None:
        local = self._local(path)
        if local.is_dir() and recursive:
            shutil.rmtree(local)
        elif local.is_dir():
            local.rmdir()
        else:
            local.unlink()

    def rm_file(self, path: str) -> None:
        self._local(path).unlink()

    def _open(self, path: str, mode: str = "rb", block_size: int | None = None, **_: Any) -> Any:
        assert mode in ("rb", "wb")
        assert block_size is None or mode == "rb", "that would be the block size of the file system"
        if mode == "rb":
            return self._local(path).open("rb", buffering=0)
        return _StubWriter(self._local(path).open("wb", buffering=0))

    def open(self, path: str, mode: str = "rb", **kwargs: Any) -> Any:
        return self._open(path, mode, **kwargs)


class _StubWriter:
    """Knows little more than ``write`` and ``close``."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, data: bytes) -> int:
        assert type(data) is bytes, "what hdfs-native takes"
        if StubHdfs.fail_writes:
            StubHdfs.fail_writes -= 1
            raise OSError("all data nodes are lost")
        return self._file.write(data)

    @property
    def closed(self) -> bool:
        return self._file.closed

    def __enter__(self) -> _StubWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()
