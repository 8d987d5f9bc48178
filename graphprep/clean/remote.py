"""Leftovers at URLs: the claims of their outputs tell whose they are, and whether these runs are dead."""

from __future__ import annotations

import contextlib
import posixpath
import re
import socket
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from graphprep.clean.leftovers import WORKERS_KIND, Found, Removal
from graphprep.model.errors import UsageError
from graphprep.model.metadata import METADATA_NAME
from graphprep.model.options.clean import Leftover
from graphprep.model.shown.texts import count
from graphprep.storage.drivers import protocol_of, renames_folders
from graphprep.storage.faults import display_url
from graphprep.storage.read.urls import Storage
from graphprep.storage.write.claims import RemoteClaim
from graphprep.storage.write.objects import CLAIM_NAME, delete_objects, is_own_name

_HIDDEN = re.compile(r"\.(?P<name>.+)\.graphprep-(?:[0-9a-f]{8}(?:-old)?|workers)", re.DOTALL)
_CLAIM_BESIDE = re.compile(r"\.(?P<name>.+)\.graphprep-claim", re.DOTALL)
_CLAIM = "claim"
_UNKNOWN = "nobody can tell whether its run is alive (--all-dead)"


def find_remote(url: str, storage: Storage, removal: Removal) -> Iterator[Found]:
    """Find what was left of the output at a URL; if it is a folder of outputs, what was left in it."""
    url = url.rstrip("/")
    fs, path = storage.filesystem(url)
    path = path.rstrip("/")
    fs.invalidate_cache()
    place = _Place(fs, url.rpartition("/")[0], posixpath.dirname(path), removal, has_folders=renames_folders(url))
    name = posixpath.basename(path)
    if name and posixpath.dirname(path):  # else it is a bucket
        yield from place.output(name, place.hidden().get(name, ())).leftovers()
    inside = _Place(fs, url, path, removal, has_folders=renames_folders(url))
    if not {METADATA_NAME, CLAIM_NAME} & inside.names.keys():
        hidden = inside.hidden()
        for name in sorted({*hidden, *inside.folders()}):
            yield from inside.output(name, hidden.get(name, ())).leftovers()


@dataclass(frozen=True)
class _Place:
    """A folder in which outputs lie, as a URL and as the driver calls it."""

    fs: Any
    url: str
    path: str
    removal: Removal
    has_folders: bool

    @cached_property
    def names(self) -> dict[str, Mapping[str, Any]]:
        """What is in the folder, by name, as the driver describes it."""
        try:
            infos = self.fs.ls(self.path, detail=True)
        except FileNotFoundError:
            return {}
        return {posixpath.basename(str(info["name"]).rstrip("/")): info for info in infos if str(info["name"]) != self.path}

    def hidden(self) -> dict[str, list[str]]:
        """Return the names that runs use while they run, by the names of their outputs."""
        found: dict[str, list[str]] = {}
        for name in self.names:
            match = _HIDDEN.fullmatch(name) or (_CLAIM_BESIDE.fullmatch(name) if self.has_folders else None)
            if match is not None:
                found.setdefault(match["name"], []).append(name)
        for key in self.uploads:
            match = _HIDDEN.fullmatch(key.partition("/")[0])
            if match is not None:
                found.setdefault(match["name"], [])
        return found

    def folders(self) -> list[str]:
        """Return the folders, each of which may be an output."""
        if self.has_folders:  # there an output has its name once it is whole
            return []
        folders = {name for name, info in self.names.items() if info.get("type") == "directory"}
        return sorted(folders | {key.partition("/")[0] for key in self.uploads if "/" in key})

    @cached_property
    def uploads(self) -> dict[str, list[str]]:
        """The uploads in parts that were begun and not ended, by their path in the folder. S3 only."""
        found: dict[str, list[str]] = {}
        if protocol_of(self.url) != "s3":
            return found
        bucket, _, prefix = self.path.partition("/")
        asked = {"Bucket": bucket, "Prefix": f"{prefix}/" if prefix else ""}
        while True:
            answer = self.fs.call_s3("list_multipart_uploads", **asked)
            for upload in answer.get("Uploads", []):
                found.setdefault(upload["Key"].removeprefix(asked["Prefix"]), []).append(upload["UploadId"])
            if not answer.get("IsTruncated"):
                return found
            asked |= {"KeyMarker": answer["NextKeyMarker"], "UploadIdMarker": answer["NextUploadIdMarker"]}

    def output(self, name: str, hidden: Iterable[str]) -> _Output:
        """Return what belongs to an output."""
        return _Output(self, name, [one for one in hidden if not _CLAIM_BESIDE.fullmatch(one)])


@dataclass(frozen=True)
class _Output:
    """An output, and the hidden files and folders that runs to it made."""

    place: _Place
    name: str
    hidden: list[str]

    @property
    def _path(self) -> str:
        return posixpath.join(self.place.path, self.name)

    @cached_property
    def _claim(self) -> RemoteClaim:
        beside = posixpath.join(self.place.path, f".{self.name}.graphprep-claim")
        path = beside if self.place.has_folders else f"{self._path}/{CLAIM_NAME}"
        return RemoteClaim(self.place.fs, path, self._url(self.name), takes_over=self.place.removal.all_dead)

    @cached_property
    def _told(self) -> dict[str, Any] | None:
        """What the claim says; None: there is none."""
        return self._claim.read()

    @cached_property
    def _is_whole(self) -> bool:
        return self._has_last(self.name)

    def _has_last(self, name: str) -> bool:
        last = (self._told or {}).get("last", METADATA_NAME)
        return bool(self.place.fs.exists(posixpath.join(self.place.path, name, last)))

    def _url(self, name: str) -> str:
        return f"{self.place.url}/{name}"

    def leftovers(self) -> Iterator[Found]:
        """Yield what there is, the claim last. Who consumes them removes each before the next, while the claim is ours."""
        reason = self._reason()
        found = list(self._find(reason))
        if not found and self._told is None:
            return
        is_ours = not reason and not self.place.removal.dry_run
        if is_ours:
            try:
                self._claim.take_from(self._told)
            except UsageError as error:  # a run has begun just now
                is_ours, reason = False, error.message
                found = [Found(replace(one.leftover, reason=reason)) for one in found]
        stays = True
        try:
            yield from found
            stays = self._told is not None and any(one.needs_claim for one in found)
            if self._told is not None:
                claim = self._claim.path.removeprefix(self.place.path).lstrip("/")
                yield Found(self._leftover(claim, _CLAIM, {}, reason or ("what it tells of stays" if stays else "")))
        finally:
            if is_ours:
                (self._claim.abandon if stays else self._claim.release)()  # it tells the next one what to remove

    def _find(self, reason: str) -> Iterator[Found]:
        for name in self.hidden:
            is_only = not self._is_whole and (self._has_last(name) or self._was_replaced(name))
            found = self._hidden(name, reason or (self._only_one() if is_only else ""))
            found.needs_claim = is_only
            yield found
        if self._told is None:
            yield from self._uploads(reason)
            return
        if not self.place.has_folders and not self._is_whole:
            own = {name: size for name, size in self._files(self.name).items() if self._is_own(name)}
            if own:
                left = self._leftover(self.name, "objects of an unfinished output", own, reason)
                yield Found(left, partial(self._remove, own))
        yield from self._uploads(reason)

    def _was_replaced(self, name: str) -> bool:
        """Return whether a hidden folder is what stood where nothing is."""
        return name.endswith("-old") and not self.place.fs.exists(self._path)

    def _only_one(self) -> str:
        """Say that a hidden output is whole, and the only one."""
        last = (self._told or {}).get("last", METADATA_NAME)
        return f"it is whole, and {display_url(self._url(self.name))} is not: copy it there, {last} last, or remove it by hand"

    def _reason(self) -> str:
        """Return why all of it stays, an empty text where its run is dead."""
        if self._told is None:
            return ""
        try:
            self._claim.refuse(self._told)
        except UsageError as error:
            return error.message if self._told.get("host") == socket.gethostname() else f"{error.message} (--all-dead)"
        return ""

    def _files(self, name: str) -> dict[str, int]:
        """Return the files of a folder, or a file, with their sizes."""
        found = self.place.fs.find(posixpath.join(self.place.path, name), detail=True)
        return {str(path): int(info.get("size") or 0) for path, info in found.items() if info.get("type") != "directory"}

    def _is_own(self, path: str) -> bool:
        name = path.removeprefix(self._path).lstrip("/")
        return name != CLAIM_NAME and is_own_name(name, self._told or {})

    def _leftover(self, name: str, kind: str, files: Mapping[str, int], reason: str) -> Leftover:
        return Leftover(display_url(self._url(name)), kind, len(files), sum(files.values()), reason)

    def _hidden(self, name: str, reason: str) -> Found:
        """Return a hidden folder, or the file of a run that took no claim."""
        files = self._files(name)
        if name.endswith("-workers"):
            inside = (path.rpartition(f"/{name}/")[2] for path in files)
            reason = reason or self.place.removal.why_workers_stay(self._url(self.name), inside)
            return Found(self._leftover(name, WORKERS_KIND, files, reason), partial(self._remove, files, name))
        if self.place.names.get(name, {}).get("type") == "directory":
            return Found(self._leftover(name, "unfinished output", files, reason), partial(self._remove, files, name))
        if not self.place.removal.all_dead:
            reason = reason or _UNKNOWN
        return Found(self._leftover(name, "unfinished file", files, reason), partial(self._remove, files))

    def _uploads(self, reason: str) -> Iterator[Found]:
        """Yield the uploads to the output and to its hidden folders; those of a file of its name are anybody's."""
        for key, ids in self.place.uploads.items():
            first, _, rest = key.partition("/")
            match = _HIDDEN.fullmatch(first)
            is_ours = match is not None and match["name"] == self.name
            if self._told is not None and first == self.name and rest:
                is_ours = self._is_own(f"{self._path}/{rest}")
            if not is_ours and key != self.name:
                continue
            unknown = "" if is_ours or self.place.removal.all_dead else _UNKNOWN
            left = self._leftover(key, f"{count(len(ids), 'unfinished upload')}", {}, reason or unknown)
            yield Found(left, partial(self._abort, key, ids))

    def _remove(self, files: Mapping[str, int], folder: str = "") -> str:
        """Remove files, and the hidden folder that they lie in. Raises what the driver does."""
        if not self.place.removal.dry_run:
            path = posixpath.join(self.place.path, folder)
            if folder and self.place.has_folders:
                self.place.fs.rm(path, recursive=True)
                return ""
            delete_objects(self.place.fs, list(files))
            with contextlib.suppress(Exception):  # drivers that have folders all the same
                if folder:
                    self.place.fs.rm(path, recursive=True)
        return ""

    def _abort(self, key: str, ids: list[str]) -> str:
        if not self.place.removal.dry_run:
            bucket, _, prefix = self.place.path.partition("/")
            for upload in ids:
                full = posixpath.join(prefix, key)
                with contextlib.suppress(FileNotFoundError):
                    self.place.fs.call_s3("abort_multipart_upload", Bucket=bucket, Key=full, UploadId=upload)
        return ""
