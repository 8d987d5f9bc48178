"""Exporters by name, with the options that a user gave. Nothing is imported before it is asked for."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any, cast, get_origin

from graphprep.exporters.exporter import Exporter
from graphprep.model.errors import UsageError, one_of
from graphprep.model.export import TargetInfo, TargetOption
from graphprep.model.metadata import GraphMetadata
from graphprep.model.options.checks import coerce_option, describe_values, option_meanings, option_types
from graphprep.model.plugins import Plugins

GROUP = "graphprep.exporters"
# They work from a checkout that is not installed, too.
_BUILT_IN = {
    "deepgnn": "graphprep.exporters.deepgnn.exporter:DeepGnnExporter",
    "deepgnn-edgelist": "graphprep.exporters.deepgnn.text:EdgeListExporter",
    "deepgnn-json": "graphprep.exporters.deepgnn.text:JsonExporter",
    "deepgnn-tsv": "graphprep.exporters.deepgnn.text:TsvExporter",
    "dgl-chunked": "graphprep.exporters.dgl.chunked:ChunkedExporter",
    "distdgl": "graphprep.exporters.dgl.distdgl:DistDglExporter",
    "graphbolt": "graphprep.exporters.dgl.graphbolt:GraphBoltExporter",
    "glt": "graphprep.exporters.glt.exporter:GltExporter",
    "pyg": "graphprep.exporters.pyg.exporter:PygExporter",
    "scipy": "graphprep.exporters.plain.scipy_files:ScipyExporter",
    "npy": "graphprep.exporters.plain.npy_files:NpyExporter",
    "parquet": "graphprep.exporters.plain.parquet_files:ParquetExporter",
    "edges": "graphprep.exporters.plain.edges_text:EdgesExporter",
    "mtx": "graphprep.exporters.plain.mtx:MtxExporter",
    "metis": "graphprep.exporters.plain.metis:MetisExporter",
    "ogb": "graphprep.exporters.plain.ogb:OgbExporter",
}


_PLUGINS = Plugins(GROUP, _BUILT_IN, "target", "uninstall all packages but one of these")


def known_targets() -> tuple[str, ...]:
    """List the names of targets: ours, then those that installed packages register, by name."""
    return _PLUGINS.names(_registered())


def find_exporter(name: str) -> type:
    """Find an exporter's class by its target's name.

    Raises UsageError where there is none, where two packages register the name, or where its module cannot be imported.
    """
    return _PLUGINS.find(name, _registered())


@functools.cache
def _registered() -> Iterable[EntryPoint]:
    return entry_points(group=GROUP)


def make_exporter(name: str, options: Mapping[str, object]) -> Exporter:
    """Make the exporter of a target with the user's options, by the names of its fields; None means not given.

    Texts become what the field's annotation says, lists are split at commas. Raises UsageError for an option that the exporter
    does not have, or whose value does not fit.
    """
    cls = find_exporter(name)
    fields = option_types(cls)
    given: dict[str, Any] = {}
    for option, value in options.items():
        key = option.replace("-", "_")
        if value is None:
            continue
        if key not in fields:
            fix = one_of(fields, "its options are:", found=key)
            raise UsageError(f"target {name!r} has no option {option!r}", fix=fix)
        is_list = isinstance(value, str) and get_origin(fields[key]) in (tuple, list)
        items = [item for item in str(value).split(",") if item] if is_list else value
        given[key] = coerce_option(f"{name}: option {key}", items, fields[key])
    return cast(Exporter, cls(**given))


def describe_targets(
    names: Sequence[str] = (), metadata: GraphMetadata | None = None, options: Mapping[str, object] | None = None
) -> list[TargetInfo]:
    """Describe targets, by default all, and what each would make of a store.

    ``options`` are those of the only target. Raises UsageError for a target that is not there, and options that it has not.
    """
    if options and len(names) != 1:
        raise UsageError("options are of one target, and none is named", fix="name it with --to, or leave its options out")
    return [_describe(name, metadata, options or {}) for name in names or known_targets()]


def _describe(name: str, metadata: GraphMetadata | None, options: Mapping[str, object]) -> TargetInfo:
    cls: Any = find_exporter(name)
    exporter = make_exporter(name, options)
    info = TargetInfo(name, cls.loads_in, cls.carries, getattr(cls, "needs", ""), _list_options(cls))
    if metadata is None:
        return info
    try:
        plan = exporter.plan(metadata.without_negatives()[0])
    except UsageError as error:
        return dataclasses.replace(info, refusal=error.message)
    from graphprep.derived.need import reads_by_id

    made = [f"{layout} arrays" for layout in plan.need.layouts if layout not in metadata.layouts]
    if plan.need.edge_columns not in (None, metadata.primary_layout):
        made.append("edge columns in another order")
    if any(reads_by_id(metadata, plan.need, number) for number in range(len(metadata.edge_types))):
        made.append("the order of the input")
    return dataclasses.replace(info, makes=tuple(made), unsupported=tuple(one.text for one in plan.unsupported))


def _list_options(cls: type) -> tuple[TargetOption, ...]:
    hints, meanings = option_types(cls), option_meanings(cls)
    fields = dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ()
    return tuple(
        TargetOption(one.name, describe_values(hints[one.name]), _default_text(one), meanings.get(one.name, ""))
        for one in fields
        if one.init
    )


def _default_text(field: dataclasses.Field[Any]) -> str:
    value = field.default
    if value is dataclasses.MISSING:
        value = field.default_factory() if field.default_factory is not dataclasses.MISSING else None
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, tuple | list) else "" if value is None else str(value)
