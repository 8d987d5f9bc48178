"""Files of a number for each node of a type: scores, and permutations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from graphprep.decoders.cells.arrays_files import find_array
from graphprep.model.errors import DataError, StorageError, UsageError
from graphprep.model.metadata import ArrayEntry
from graphprep.model.schema import path_name
from graphprep.storage.faults import display_url
from graphprep.storage.read.arrays import ArrayReader
from graphprep.storage.read.urls import Storage


def open_node_files(
    storage: Storage, url: str, node_types: Sequence[str], sizes: Sequence[int], kinds: str
) -> Mapping[str, ArrayReader]:
    """Open ``FILE.npy`` of the one node type, or ``<type>.npy`` in a folder of those node types that have one.

    ``kinds`` are those of dtypes that may be. Raises DataError where an array has another shape or dtype, StorageError where
    there is none, UsageError where one file is to serve several node types.
    """
    if storage.is_dir(url):
        urls = {name: storage.join(url, f"{path_name(name)}.npy") for name in node_types}
        urls = {name: one for name, one in urls.items() if storage.exists(one)}
        if not urls:
            names = ", ".join(f"{path_name(name)}.npy" for name in node_types)
            raise StorageError("the folder has a file for none of the node types", place=display_url(url), fix=f"add {names}")
    elif len(node_types) == 1:
        urls = {node_types[0]: url}
    else:
        raise UsageError(
            f"one file cannot order {len(node_types)} node types",
            place=display_url(url),
            fix="name a folder of <type>.npy files; types without one keep their order",
        )
    return {name: _open(storage, urls[name], size, kinds) for name, size in zip(node_types, sizes, strict=True) if name in urls}


def _open(storage: Storage, url: str, size: int, kinds: str) -> ArrayReader:
    header = find_array(storage, url).header
    if header.shape != (size,) or header.dtype.kind not in kinds:
        found, what = f"{header.dtype}{list(header.shape)}", "numbers" if "f" in kinds else "integers"
        raise DataError(
            f"expected {size} {what}, found {found}",
            place=display_url(url),
            fix="write one for each node, by its typed ID" if "f" in kinds else "write the old typed ID of each new one",
        )
    return ArrayReader(storage, url, ArrayEntry(url, header.dtype.str, header.shape, header.num_bytes, ""))
