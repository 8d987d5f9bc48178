"""Write the pictures of a report to a file, of the kind that its name says."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Literal

from graphprep.engine.ledger import Need
from graphprep.model.errors import UsageError
from graphprep.model.options.stats import StatsOptions, StatsReport
from graphprep.stats.pictures.draw import draw, load_matplotlib
from graphprep.stats.pictures.page import page
from graphprep.stats.pictures.panels import NOTHING, sections
from graphprep.storage.faults import display_url
from graphprep.storage.read.arrays import is_store
from graphprep.storage.read.urls import Storage, local_path
from graphprep.storage.write.files import check_place, write_pieces
from graphprep.storage.write.places import refuse_overlap

_KINDS: dict[str, Literal["svg", "png", "html"]] = {".svg": "svg", ".png": "png", ".html": "html"}
_PICTURE_BYTES = 64 << 20


def picture_needs() -> Iterator[Need]:
    """Declare what drawing takes."""
    yield Need("pictures", _PICTURE_BYTES, "matplotlib, and an image of all panels")


def check_plot(options: StatsOptions, storage: Storage, inputs: Sequence[str], *more: object) -> None:
    """Refuse pictures that cannot be made, before anything else is done.

    Raises UsageError for a name of another kind, for a file that is there already, is an input or would lie in a store, and
    where matplotlib is not installed; StorageError where the file cannot be written.
    """
    if options.plot is None:
        if options.overwrite:
            raise UsageError("--overwrite does nothing without --plot", fix="leave it out")
        return
    _kind(options.plot)
    load_matplotlib()
    store = _store_around(options.plot, storage)
    if store is not None:
        place = display_url(options.plot)
        raise UsageError(f"this is inside the store {display_url(store)}", place=place, fix="name a file outside of it")
    if storage.exists(options.plot):
        refuse_overlap(storage, [options.plot], {"input": inputs}, *more)
    if storage.is_dir(options.plot):
        raise UsageError("this is a folder", place=display_url(options.plot), fix="name a file")
    if storage.exists(options.plot) and not options.overwrite:
        raise UsageError("the file exists", place=display_url(options.plot), fix="add --overwrite, or choose another name")
    check_place(storage, options.plot)


def _store_around(url: str, storage: Storage) -> str | None:
    """Return the store in which a file would lie; None: in none. Of a URL only its own folder is looked at."""
    path = local_path(url)
    folders = [url.rpartition("/")[0]] if path is None else map(str, Path(os.path.realpath(path)).parents)
    return next((folder for folder in folders if is_store(storage, folder)), None)


def _kind(url: str) -> Literal["svg", "png", "html"]:
    kind = _KINDS.get(PurePosixPath(url).suffix.lower())
    if kind is None:
        what = "this name says not which kind of pictures it holds"
        raise UsageError(what, place=f"--plot {display_url(url)}", fix="let it end in .svg, .png or .html")
    return kind


def write_plot(report: StatsReport, url: str, storage: Storage) -> None:
    """Write the pictures. Raises StorageError where that fails."""
    kind = _kind(url)
    if kind == "html":
        data = page(report).encode(errors="backslashreplace")
    else:
        data = draw(tuple(chain.from_iterable(one.panels for one in sections(report))) or (NOTHING,), kind)
    write_pieces(storage, url, [data])
