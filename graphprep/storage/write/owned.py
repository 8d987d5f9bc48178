"""What of the files at an output may be replaced: those that its own manifest lists, and nothing else."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphprep.model.errors import StorageError, UsageError
from graphprep.model.metadata import EXPORT_FORMAT, MANIFEST_NAME, METADATA_NAME, PROVENANCE_NAME, RECORD_NAME, STORE_FORMAT
from graphprep.storage.faults import display_url, plain_words
from graphprep.storage.read.urls import local_path

if TYPE_CHECKING:
    from graphprep.storage.read.urls import Storage

OWN_TEMPORARY = re.compile(r"(.*/)?\.graphprep-(claim|lock-[^/]*|tmp-.*)")  # what runs leave, and remove
_MOST_NAMED = 5


def read_json(storage: Storage, url: str) -> Any:
    """Return the value of a JSON file that stands at an output; None where there is none that can be read."""
    with contextlib.suppress(StorageError, ValueError, RecursionError):
        storage.refuse_stream(url)
        return json.loads(storage.read_aside(url))
    return None


def store_files(storage: Storage, out: str) -> frozenset[str] | None:
    """Return the files of the store at ``out``, by its metadata.json and manifests; None where these do not say."""
    value = read_json(storage, storage.join(out, METADATA_NAME))
    names = {METADATA_NAME, PROVENANCE_NAME}
    try:
        if value["format"] != STORE_FORMAT or not value["parts"]:
            return None
        for part in value["parts"]:
            path = part["path"]
            manifest = read_json(storage, storage.join(out, f"{path}/{MANIFEST_NAME}"))
            names |= {f"{path}/{MANIFEST_NAME}", *(f"{path}/{array['path']}" for array in manifest["arrays"])}
    except (TypeError, KeyError, ValueError):
        return None
    return frozenset(names)


def export_files(storage: Storage, out: str) -> frozenset[str] | None:
    """Return the files of the export at ``out``; None where there is none, or one whose export.json does not list them."""
    value = read_json(storage, storage.join(out, RECORD_NAME))
    return frozenset(value["files"]) if is_export(value) and isinstance(value.get("files"), dict) else None


def is_export(value: object) -> bool:
    """Return whether an export.json says that it is one."""
    return isinstance(value, dict) and value.get("format") == EXPORT_FORMAT


def find_files(storage: Storage, out: str) -> list[str]:
    """Return the files below ``out``, by their paths in it; links count as files. Raises StorageError."""
    path = local_path(out)
    with plain_words(out):
        if path is not None:
            return sorted(_walk(path, ""))
        fs, target = storage.filesystem(out)
        fs.invalidate_cache()
        prefix = target.rstrip("/") + "/"
        return sorted(name.removeprefix(prefix) for name in fs.find(target) if name.startswith(prefix))


def _walk(path: str, prefix: str) -> Iterator[str]:
    with os.scandir(path) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(entry.path, f"{prefix}{entry.name}/")
            else:
                yield prefix + entry.name


def refuse_foreign(storage: Storage, out: str, names: Collection[str]) -> None:
    """Refuse to replace what holds other files than ``names``, and name these. Raises UsageError."""
    foreign = [name for name in find_files(storage, out) if name not in names and not OWN_TEMPORARY.fullmatch(name)]
    if foreign:
        more = f" and {len(foreign) - _MOST_NAMED:,} more" if len(foreign) > _MOST_NAMED else ""
        named = ", ".join(map(display_url, foreign[:_MOST_NAMED]))
        raise UsageError(
            f"holds files that graphprep did not write there: {named}{more}; --overwrite replaces nothing else",
            place=display_url(out),
            fix="move them away, or choose another name",
        )


def remove_files(folder: Path, names: Collection[str]) -> bool:
    """Remove the local files ``names`` of a folder, our own temporary ones, and the folders that are empty then.

    Return whether nothing is left.
    """
    for name in _walk(str(folder), ""):
        if name in names or OWN_TEMPORARY.fullmatch(name):
            with contextlib.suppress(OSError):
                (folder / name).unlink()
    for path, _, _ in os.walk(folder, topdown=False):
        with contextlib.suppress(OSError):
            os.rmdir(path)  # noqa: PTH106 - walk gives text
    return not os.path.lexists(folder)
