"""Check a folder of samples, or an export: whether what it says of itself is whole, and its files are what it says."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphprep.model.errors import StorageError
from graphprep.model.metadata import MANIFEST_NAME, RECORD_NAME
from graphprep.model.protocols import Reporter
from graphprep.model.shown.texts import count
from graphprep.storage.read.arrays import file_digest
from graphprep.storage.read.urls import Storage
from graphprep.store.made import SAMPLES_FORMAT
from graphprep.validate.check import StoreReport
from graphprep.validate.faults import Faults

_KEYS = {
    MANIFEST_NAME: ("store", "options", "direction", "block_types", "num_layers", "num_batches", "num_epochs", "columns"),
    RECORD_NAME: ("target", "options", "ids"),
}


@dataclass(frozen=True)
class MadeReport(StoreReport):
    """What checking samples or an export found; ``what`` was checked, in words; ``far``: how far that goes, if not fully."""

    what: str = ""
    far: str = ""


def check_made(storage: Storage, url: str, value: Mapping[str, Any], reporter: Reporter, max_faults: int) -> MadeReport:
    """Check samples against their manifest, sizes and hashes included, and an export against its record, which has sizes."""
    begin, faults, num_bytes = time.perf_counter(), Faults(max_faults), 0
    is_samples = value["format"] == SAMPLES_FORMAT
    place = MANIFEST_NAME if is_samples else RECORD_NAME
    store = value.get("store", {}) if is_samples else value
    for key in _KEYS[place]:
        if key not in value:
            faults.add(place, f"{key} is missing")
    nodes, edges = (_counts(store, noun, place, faults) for noun in ("node", "edge"))
    files = _shards(value, faults) if is_samples else _files(value, faults)
    reporter.stage("check", total_bytes=None)
    for file in files:
        num_bytes += _check_file(storage, url, file, place, faults)
        reporter.advance(num_bytes=num_bytes)
    if is_samples and not faults.num:
        flows = sum(one["num_flows"] for one in value["shards"])
        if flows != value.get("num_flows"):
            faults.add(place, f"the shards have {flows} flows, num_flows says {value.get('num_flows')}")
    far = "" if is_samples else ", as far as names and sizes tell"
    what = f"{count(len(files), 'shard' if is_samples else 'file')}, {'sizes and hashes' if is_samples else 'names and sizes'}"
    took = time.perf_counter() - begin
    return MadeReport(url, faults.num, tuple(faults.kept), nodes, edges, 0, len(files), num_bytes, took, what, far)


def _counts(store: Any, noun: str, place: str, faults: Faults) -> dict[str, int]:
    try:
        names, counts = store[f"{noun}_type"], store[f"num_{noun}s_per_type"]
        return {str(name): int(number) for name, number in zip(names, counts, strict=True)}
    except (KeyError, TypeError, ValueError) as error:
        faults.add(place, f"{noun}_type and num_{noun}s_per_type: {type(error).__name__}: {error}")
        return {}


@dataclass(frozen=True)
class _File:
    """A file as it ought to be; None: nobody says."""

    name: str
    num_bytes: int | None = None
    xxh3: str | None = None


def _shards(value: Mapping[str, Any], faults: Faults) -> list[_File]:
    """Return the files of samples, by the manifest."""
    shards = value.get("shards")
    if not isinstance(shards, list):
        faults.add(MANIFEST_NAME, "shards is no list")
        return []
    files = []
    for number, one in enumerate(shards):
        try:
            files.append(_File(str(one["path"]), one["bytes"], one["xxh3"]))
            _ = one["num_flows"] + 0
        except (KeyError, TypeError) as error:
            faults.add(f"{MANIFEST_NAME}: shards[{number}]", f"{type(error).__name__}: {error}")
    return files


def _files(value: Mapping[str, Any], faults: Faults) -> list[_File]:
    """Return the files of an export, by its record."""
    files = value.get("files")
    if not isinstance(files, dict):
        faults.add(RECORD_NAME, "files is no object of names and sizes")
        return []
    return [_File(name, num_bytes) for name, num_bytes in files.items()]


def _check_file(storage: Storage, url: str, wanted: _File, place: str, faults: Faults) -> int:
    """Hold a file's size and hash against what is wanted; return its size."""
    file = storage.join(url, wanted.name)
    try:
        if ".." in wanted.name.split("/") or wanted.name.startswith("/") or not storage.exists(file):
            faults.add(wanted.name, "the file is missing")
            return 0
        size = storage.size(file)
        if wanted.num_bytes is not None and size not in (-1, wanted.num_bytes):
            faults.add(wanted.name, f"the file has {size} bytes, {place} says {wanted.num_bytes}")
        elif wanted.xxh3 is not None and (found := file_digest(storage, file)) != wanted.xxh3:
            faults.add(wanted.name, f"the file has xxh3 {found}, {place} says {wanted.xxh3}")
    except StorageError as error:
        faults.add(wanted.name, error.message)
        return 0
    return max(size, 0)
