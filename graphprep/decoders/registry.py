"""Decoders by name, by class, and with the options that a user gave. Nothing is imported before it is asked for."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

from graphprep.model.errors import UsageError
from graphprep.model.options.checks import coerce_option, option_types
from graphprep.model.plugins import Plugins, import_named
from graphprep.model.protocols import Decoder

if TYPE_CHECKING:
    from graphprep.storage.read.urls import Storage

GROUP = "graphprep.decoders"
# They work from a checkout that is not installed, too.
_BUILT_IN = {
    "edgelist": "graphprep.decoders.deepgnn.edgelist:EdgeListDecoder",
    "json": "graphprep.decoders.deepgnn.json_lines:JsonDecoder",
    "tsv": "graphprep.decoders.deepgnn.tsv:TsvDecoder",
    "chunked": "graphprep.decoders.chunked.decoder:ChunkedDecoder",
    "edges": "graphprep.decoders.edges.decoder:EdgesDecoder",
    "arrays": "graphprep.decoders.arrays.decoder:ArraysDecoder",
    "mtx": "graphprep.decoders.matrices.mtx:MtxDecoder",
    "metis": "graphprep.decoders.matrices.metis:MetisDecoder",
    "graph": "graphprep.decoders.configs.graph_file:GraphFile",
    "triples": "graphprep.decoders.edges.triples:TriplesDecoder",
    "neo4j": "graphprep.decoders.configs.neo4j:Neo4jTables",
    "graphstorm": "graphprep.decoders.configs.graphstorm:GraphStormConfig",
    "graphbolt": "graphprep.decoders.configs.graphbolt:GraphBoltDataset",
    "ogb": "graphprep.decoders.configs.ogb:OgbFolder",
}
# Options that are called by their flag, in the singular, and their fields.
_FIELDS = {"column": "columns", "drop_column": "drop_columns"}
# Options of tables that are named by --nodes and --edges, and of nothing else.
_TABLES = "tables"
_SHARED_OPTIONS = (  # that edge lists have as well
    *("src_col", "dst_col", "weight_col", "time_col", "relation_col", "time_unit", "id_type", "input_layout"),
    *("columns", "drop_columns", "delimiter", "header", "quote"),
)
_CONFIG_KEYS = {"drop_columns": "drop"}
_TABLE_OPTIONS = ("id_col", "type_col", "id_space", "null", "escape", "comment")
_FLAGS = {"columns": "--column", "drop_columns": "--drop-column"}


_PLUGINS = Plugins(GROUP, _BUILT_IN, "decoder", "choose one with --decoder package.module:Class")


def known_decoders() -> tuple[str, ...]:
    """List the names of decoders: ours, then those that installed packages register, by name."""
    return _PLUGINS.names(_registered())


def find_decoder(name: str) -> type:
    """Find a decoder's class by its name.

    Raises UsageError where there is none, where two packages register the name, or where its module cannot be imported.
    """
    return _PLUGINS.find(name, _registered())


def own_decoders() -> frozenset[str]:
    """Return the names of our decoders that no other package registers, too."""
    return _PLUGINS.own_names(_registered())


@functools.cache  # asked once for every decoder; looking through what is installed takes 15 ms
def _registered() -> Iterable[EntryPoint]:
    return entry_points(group=GROUP)


def load_class(path: str) -> type:
    """Load a class named ``package.module:Class``, also from a module in the current folder.

    Raises UsageError where the text, the module or the class is wrong.
    """
    module, class_name = import_named(path, "--decoder", "package.module:Class", "the class")
    found = getattr(module, class_name, None)
    if not isinstance(found, type):
        classes = sorted(name for name, item in vars(module).items() if isinstance(item, type) and hasattr(item, "decode"))
        hint = f"use one of {', '.join(classes)}" if classes else "name a class with a method decode"
        raise UsageError(f"--decoder {path}: module {module.__name__!r} has no class {class_name!r}", fix=hint)
    return found


# ------------------------------------------------------------------------------------------------------ options


def load_options(storage: Storage, url: str, decoder: str = "") -> dict[str, Any]:
    """Read a file of decoder options, JSON or YAML: options for any decoder, or an object of options for each.

    With the name of a ``decoder``, only what concerns it is returned; plain options override those of its object. Raises
    DataError with the key where it does not fit schemas/decoder-options.schema.json.
    """
    from graphprep.storage.read.schemas import check_json, parse_json
    from graphprep.storage.read.yaml_files import parse_yaml

    data = storage.read_bytes(url)
    value = parse_json(data, url) if data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") else parse_yaml(data, url)
    check_json(value, "decoder-options", url)
    options = cast("dict[str, Any]", value or {})
    return _options_for(decoder, options) if decoder else options


def _options_for(decoder: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Flatten options by decoder."""
    own = options.get(decoder)
    flat = {key: value for key, value in options.items() if not isinstance(value, Mapping)}
    return {**own, **flat} if isinstance(own, Mapping) else flat


class _Constructor(Protocol):
    def __call__(self, **options: Any) -> Any: ...


def make_decoder(cls: type, options: Mapping[str, object]) -> Decoder:
    """Make a decoder with the user's options, of a class of ours or of one written for DeepGNN.

    Keys are field names, or the flags' names; a key that is a decoder's name holds that decoder's own options, which plain
    ones override. None means not given. Texts are turned into what the field's annotation says. Raises UsageError for an
    option that the decoder does not have or whose value does not fit.
    """
    name = decoder_name(cls)
    is_foreign = not hasattr(cls, "plan") and not hasattr(cls, "read_config")
    fields = option_types(cls) if options else {}
    if is_foreign:
        fields = {**fields, "weight_dtype": Literal["float32", "float64"]}
    given: dict[str, Any] = {}
    for option, value in _options_for(name, options).items() if options else ():
        key = _FIELDS.get(option, option) if option not in fields else option
        if value is None:
            continue
        if key not in fields:
            raise _unknown_option(name, key, fields)
        given[key] = coerce_option(flag_of(key), value, fields[key])
    weight_dtype = given.pop("weight_dtype", "float32") if is_foreign else ""
    if not (hasattr(cls, "decode") or hasattr(cls, "read") or hasattr(cls, "read_config")):
        raise UsageError(f"{name} is no decoder: it has neither decode nor read", fix="see graphprep.model.protocols.Decoder")
    try:
        made = cast(_Constructor, cls)(**given)
    except TypeError as error:
        raise UsageError(f"decoder {name!r} cannot be made: {error}", fix="give every option of a decoder a default") from None
    if is_foreign:
        from graphprep.decoders.adapter import LineDecoderAdapter

        made = LineDecoderAdapter(made, weight_dtype)
    return cast(Decoder, made)


def decoder_name(cls: type) -> str:
    """Return the decoder's name: its own, else that of its class."""
    name = getattr(cls, "name", None)
    return name if isinstance(name, str) else f"{cls.__module__}:{cls.__qualname__}"


def flag_of(option: str) -> str:
    """Return the command line's flag for an option."""
    return _FLAGS.get(option, f"--{option.replace('_', '-')}")


def _unknown_option(name: str, option: str, fields: Mapping[str, Any]) -> UsageError:
    owners = [other for other in _BUILT_IN if _FIELDS.get(option, option) in option_types(find_decoder(other))]
    if option in _TABLE_OPTIONS:
        fix = "write it in the config: docs/graph-config.md lists its keys" if name == "graph" else "leave it out"
        return UsageError(f"{flag_of(option)} belongs to --nodes and --edges, not to {name}", fix=fix)
    if owners:
        fit = ["tables (--nodes, --edges)", *owners] if option in _SHARED_OPTIONS else owners
        listed = " and ".join((", ".join(fit[:-1]), fit[-1])) if len(fit) > 1 else fit[0]
        if name == "graph":
            key = _CONFIG_KEYS.get(option, option)
            fix = (
                f"write it in the config, as {key!r} of a table: docs/graph-config.md"
                if len(fit) > len(owners)
                else "leave it out"
            )
        else:
            fix = "leave it out" if name == _TABLES else f"leave it out, or choose --format {owners[0]}"
        return UsageError(f"{flag_of(option)} belongs to {listed}, not to {name}", fix=fix)
    known = ", ".join(fields) or "none at all"
    return UsageError(f"decoder {name!r} has no option {option!r}", fix=f"its options are: {known}")
