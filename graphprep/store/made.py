"""What graphprep wrote that is no store: a folder of samples or an export, known by the file that it wrote last."""

from __future__ import annotations

import json
import re
from typing import Any

from graphprep.model.errors import StorageError
from graphprep.model.metadata import EXPORT_FORMAT, MANIFEST_NAME, RECORD_NAME
from graphprep.storage.read.urls import STDIN, Storage

SAMPLES_FORMAT = "graphprep-samples"
_LAST_FILES = {MANIFEST_NAME: SAMPLES_FORMAT, RECORD_NAME: EXPORT_FORMAT}
_FILE = re.compile(r"\?|\.[^/]*/?$")


def read_made(storage: Storage, url: str) -> dict[str, Any] | None:
    """Return what the last file of a folder of samples or of an export says, None where ``url`` is neither."""
    if url == STDIN or (not storage.is_local(url) and _FILE.search(url)):  # a server is not asked for what lies in a file
        return None
    for name, file_format in _LAST_FILES.items():
        place = storage.join(url, name)
        try:
            if not storage.exists(place):
                continue
            value = json.loads(storage.read_bytes(place))
        except (StorageError, ValueError, RecursionError):
            continue
        if isinstance(value, dict) and value.get("format") == file_format:
            return value
    return None
