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
    """Check samples against their manifest, sizes and hashes included, and an export's record, which names no files."""
    begin, faults, num_bytes = time.perf_counter(), Faults(max_faults), 0
    is_samples = value["format"] == SAMPLES_FORMAT
    place = MANIFEST_NAME if is_samples else RECORD_NAME
    store = value.get("store", {}) if is_samples else value
    for key in _KEYS[place]:
        if key not in value:
            faults.add(place, f"{key} is missing")
    nodes, edges = (_counts(store, noun, place, faults) for noun in ("node", "edge"))
    shards = value.get("shards") if is_samples else []
    if not isinstance(shards, list):
        faults.add(place, "shards is no list")
        shards = []
    reporter.stage("check", total_bytes=None)
    for number, one in enumerate(shards):
        num_bytes += _check_shard(storage, url, one, f"{place}: shards[{number}]", faults)
        reporter.advance(num_bytes=num_bytes)
    if is_samples and not faults.num:
        flows = sum(one["num_flows"] for one in shards)
        if flows != value.get("num_flows"):
            faults.add(place, f"the shards have {flows} flows, num_flows says {value.get('num_flows')}")
    far = "" if is_samples else f", as far as {RECORD_NAME} tells"
    what = f"{count(len(shards), 'shard')}, sizes and hashes" if is_samples else f"{RECORD_NAME}, which names no files to check"
    took = time.perf_counter() - begin
    return MadeReport(url, faults.num, tuple(faults.kept), nodes, edges, 0, len(shards), num_bytes, took, what, far)


def _counts(store: Any, noun: str, place: str, faults: Faults) -> dict[str, int]:
    try:
        names, counts = store[f"{noun}_type"], store[f"num_{noun}s_per_type"]
        return {str(name): int(number) for name, number in zip(names, counts, strict=True)}
    except (KeyError, TypeError, ValueError) as error:
        faults.add(place, f"{noun}_type and num_{noun}s_per_type: {type(error).__name__}: {error}")
        return {}


def _check_shard(storage: Storage, url: str, entry: Any, place: str, faults: Faults) -> int:
    """Hold a file's size and hash against its entry; return its size."""
    try:
        name, wanted, digest, _ = entry["path"], entry["bytes"], entry["xxh3"], entry["num_flows"]
    except (KeyError, TypeError) as error:
        faults.add(place, f"{type(error).__name__}: {error}")
        return 0
    file = storage.join(url, str(name))
    try:
        if "/" in str(name) or not storage.exists(file):
            faults.add(str(name), "the file is missing")
            return 0
        size = storage.size(file)
        if size not in (-1, wanted):
            faults.add(name, f"the file has {size} bytes, {MANIFEST_NAME} says {wanted}")
        elif (found := file_digest(storage, file)) != digest:
            faults.add(name, f"the file has xxh3 {found}, {MANIFEST_NAME} says {digest}")
    except StorageError as error:
        faults.add(str(name), error.message)
        return 0
    return max(size, 0)
