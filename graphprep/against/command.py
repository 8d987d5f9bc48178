"""``validate --against``: a store is made of the input, and compared with the one that is checked. The stages in order."""

from __future__ import annotations

import contextlib
import gc
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, cast

from graphprep.against.compare import Comparison, Difference, InputRow, LostEdgesError, compare_needs
from graphprep.against.places import find_places
from graphprep.against.report import AgainstReport
from graphprep.convert import pipeline
from graphprep.edges.moves import tell_nobody
from graphprep.model.errors import DataError, GraphprepError, UsageError
from graphprep.model.metadata import PROVENANCE_NAME, GraphMetadata
from graphprep.model.option import flag_of
from graphprep.model.options.checks import checked
from graphprep.model.options.convert import ConvertOptions, ConvertSummary
from graphprep.model.options.decoding import DecoderOptions
from graphprep.model.options.recorded import options_of
from graphprep.model.protocols import Reporter
from graphprep.rewrite.run import StoreRun
from graphprep.storage.faults import display_url
from graphprep.storage.private import PrivateFolder
from graphprep.storage.read.urls import STDIN, Storage
from graphprep.store.checked_ids import CheckingStore
from graphprep.store.items import check_arrays
from graphprep.store.write import read_lineage
from graphprep.validate.check import StoreReport
from graphprep.validate.faults import Fault

Convert = Callable[..., ConvertSummary]


def compare_with_input(
    report: StoreReport,
    inputs: Sequence[str],
    given: ConvertOptions,
    reporter: Reporter,
    make_convert: Callable[[ConvertOptions], Convert],
    *,
    max_faults: int,
) -> AgainstReport:
    """Compare a store that was checked with ``inputs``: nodes, edges and columns by raw IDs, whatever their order.

    They are read with the options that provenance.json records; those of ``given`` that are not the default win. An input
    called provenance.json stands for those that it records. ``make_convert`` returns what converts with some options. Raises
    UsageError for a store that ``transform`` made, and what ``convert`` raises for the input.
    """
    begin = time.perf_counter()
    run = replace(given.run, device="cpu")
    with contextlib.ExitStack() as stack:
        with Storage(run.storage_options, run.tmp_dir) as storage:
            urls, options = _reading(storage, report.store, inputs, given)
        folder = PrivateFolder(run.tmp_dir)
        stack.callback(folder.remove)
        made = str(Path(folder.make()) / "store")
        options = replace(options, run=run)
        try:
            converted = make_convert(options)(urls, made, options, reporter)
        except UsageError as error:
            raise _naming_record(error, options, given, report.store) from None
        gc.collect()  # what converting left counts against the limit
        found, num, metadata, peak = _compare(report, made, options, reporter, max_faults)
        faults = _with_places(found, urls, options, metadata)
    return AgainstReport(
        store=report,
        inputs=tuple(urls) or ("tables",),
        num_differences=num,
        differences=tuple(faults),
        elapsed_s=time.perf_counter() - begin,
        peak_memory_bytes=max(peak, converted.peak_memory_bytes),
    )


def _reading(storage: Storage, store: str, inputs: Sequence[str], given: ConvertOptions) -> tuple[list[str], ConvertOptions]:
    """Return what is to be read, and how: as recorded, but for what is given."""
    lineage, urls = read_lineage(storage, store), list(inputs)
    if operations := lineage.get("operations"):
        raise UsageError(
            f"transform made this store ({', '.join(operations)}), so it is not to hold what an input says",
            place=display_url(store),
            fix="compare the store that it was made of; options of convert, such as --dedup, are honoured",
        )
    recorded = lineage.get("convert", {})
    if len(urls) == 1 and urls[0].rstrip("/").rpartition("/")[2] == PROVENANCE_NAME:
        place, recorded = urls[0], _told(storage, urls[0])
        urls = list(recorded["inputs"])
        options = _options_told(recorded, place)
    else:
        options = replace(_options_told(recorded, storage.join(store, PROVENANCE_NAME)), graph=None)
    default = ConvertOptions()
    changes = {
        field.name: getattr(given, field.name)
        for field in fields(given)
        if getattr(given, field.name) != getattr(default, field.name)
    }
    changes["decoder_options"] = {**options.decoder_options, **given.decoder_options}
    changes |= {"partitions": 1, "partition_by": "range", "neighbor_order": "input", "index_dtype": "auto", "edge_ids": True}
    # Edges come to their rows in another order than in the store, if it was converted as by default.
    changes |= {"layout": "csr", "bad_records": None, "overwrite": False}
    return urls, replace(options, **changes)


def _naming_record(error: UsageError, options: ConvertOptions, given: ConvertOptions, store: str) -> UsageError:
    """Add to an error that blames options which nobody gave that they are recorded."""
    names = [name for name in options.decoder_options if name not in given.decoder_options]
    names += [
        one.name for one in fields(options) if one.name != "run" and getattr(given, one.name) != getattr(options, one.name)
    ]
    flags = {flag_of(name, ConvertOptions, DecoderOptions) for name in names}
    blamed = [flag for flag in re.findall(r"--[a-z-]+", f"{error.place} {error.message}") if flag in flags]
    if not blamed:
        return error
    words = f"{error.message} ({blamed[0]} is recorded in {PROVENANCE_NAME} of {display_url(store)})"
    fix = f"{error.fix}; options that are given, {blamed[0]} too, go before those that are recorded"
    return UsageError(words, place=error.place, fix=fix, items=error.items)


def _told(storage: Storage, url: str) -> Mapping[str, Any]:
    """Read what a provenance.json says of the input. Raises DataError where it says nothing."""
    try:
        told = json.loads(storage.read_bytes(url))
        recorded: Any = told.get("convert") if isinstance(told, dict) else None
    except (ValueError, RecursionError):
        recorded = None
    inputs = recorded.get("inputs") if isinstance(recorded, dict) else None
    if not (isinstance(inputs, list) and all(isinstance(url, str) and url and "\0" not in url for url in inputs)):
        raise DataError(
            "no input is recorded here that could be read again",
            place=display_url(url),
            fix="name the input itself, and the options with which it was converted",
        )
    return cast("Mapping[str, Any]", recorded)


def _options_told(recorded: Mapping[str, Any], url: str) -> ConvertOptions:
    """Return the options that a provenance.json records. Raises DataError where they are none."""
    try:
        return checked(options_of(recorded.get("options", {})))
    except (GraphprepError, AttributeError, TypeError, ValueError) as error:
        why = error.message if isinstance(error, GraphprepError) else "they are of another form than graphprep writes"
        raise DataError(
            f"the options that are recorded here cannot be taken: {why}",
            place=display_url(url),
            fix=f"copy {PROVENANCE_NAME} again, or remove it from the store, and give the options of convert yourself",
        ) from None


def _compare(
    report: StoreReport, made: str, options: ConvertOptions, reporter: Reporter, most: int
) -> tuple[list[Difference], int, GraphMetadata, int]:
    """Compare the stores; return what was found, how much there is, the metadata of that of the input, and the peak memory."""
    with contextlib.ExitStack() as stack:
        run = stack.enter_context(StoreRun(report.store, None, options.run, reporter))
        other = CheckingStore(run.storage, made)
        try:
            store = run.open_store()
            for part in range(store.metadata.num_parts):
                check_arrays(store, part)
            room = replace(run.room(other.metadata), advance=tell_nobody)
            run.ledger.begin("compare", tuple(compare_needs(room)))
            split = read_lineage(run.storage, report.store).get("split", ())
            comparison = Comparison(store, other, room, most, split)
            for num_rows in comparison.compare():
                run.reporter.advance(records=num_rows)
        except DataError as error:
            if report.sound or isinstance(error, LostEdgesError):
                raise
            words = f"not compared with the input, as the store is not sound: {error.message}"
            return [Difference(error.place, words)], 1, other.metadata, run.finish()
        return comparison.found, comparison.num, other.metadata, run.finish()


def _with_places(
    found: Sequence[Difference], urls: Sequence[str], options: ConvertOptions, metadata: GraphMetadata
) -> list[Fault]:
    """Return the differences, with the places of rows of the input where it can be read once more."""
    rows = [one.row for one in found if one.row is not None]
    places: Mapping[InputRow, str] = {}
    if rows and STDIN not in urls:
        with pipeline.decode_input(urls, options) as (decoded, locator):  # what is to be told of it was told
            places = find_places(decoded, locator, metadata, rows)
    faults = []
    for one in found:
        place = None if one.row is None else places.get(one.row)
        words = one.message if place is None or not one.place else f"{one.message} ({place})"
        faults.append(Fault(one.place or place or ", ".join(map(display_url, urls)), words))
    return faults
