"""Decoders by name, by class and with a user's options, and which of them reads an input, told by its first bytes.

None is imported before it is asked for, nor is what formats look like (``looks/``).
"""

from __future__ import annotations

import functools
import itertools
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

from graphprep.model.errors import DataError, UsageError, one_of
from graphprep.model.metadata import EXPORT_FORMAT, MANIFEST_NAME, METADATA_NAME, RECORD_NAME, STORE_FORMAT, part_name
from graphprep.model.option import flag_of
from graphprep.model.options.checks import coerce_option, option_types
from graphprep.model.options.decoding import OF_TABLES_ALONE, SHARED_WITH_TABLES, DecoderOptions
from graphprep.model.plugins import Plugins, import_named
from graphprep.model.protocols import Decoder, Sniffed, SniffedFile, SniffsFiles, SniffsFolders
from graphprep.storage.faults import display_url

if TYPE_CHECKING:
    from graphprep.decoders.looks.magic import Foreign
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
_OF_TEXT = frozenset(("edgelist", "json", "tsv", "edges", "mtx", "metis", "triples"))  # whose inputs are files, no TYPE=FILE
_CONFIG_KEYS = {"drop_columns": "drop"}
_TABLES = "tables"  # what --nodes and --edges name
# Options that are called by their flag, in the singular, and their fields.
_FIELDS = {"column": "columns", "drop_column": "drop_columns"}


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
    others = set(map(attrgetter("name", "value"), _registered())).difference(_BUILT_IN.items())
    return frozenset(_BUILT_IN).difference(dict(others))


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
        hint = one_of(classes, found=class_name) if classes else "name a class with a method decode"
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
        given[key] = coerce_option(flag_of(key, DecoderOptions), value, fields[key])
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


def _unknown_option(name: str, option: str, fields: Mapping[str, Any]) -> UsageError:
    owners = [other for other in _BUILT_IN if _FIELDS.get(option, option) in option_types(find_decoder(other))]
    if option in OF_TABLES_ALONE:
        fix = "write it in the config: docs/graph-config.md lists its keys" if name == "graph" else "leave it out"
        return UsageError(f"{flag_of(option, DecoderOptions)} belongs to --nodes and --edges, not to {name}", fix=fix)
    if owners:
        fit = ["tables (--nodes, --edges)", *owners] if option in SHARED_WITH_TABLES else owners
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
        return UsageError(f"{flag_of(option, DecoderOptions)} belongs to {listed}, not to {name}", fix=fix)
    fix = one_of(fields, "its options are:", found=option)
    return UsageError(f"decoder {name!r} has no option {option!r}", fix=fix)


_HEAD_BYTES = 256 << 10  # holds the first line of most nodes with many edges
_LEAST_CONFIDENCE = 0.5
_LEAST_MARGIN = 0.1
_EMPTY = "edges"  # the decoder of an empty input: an empty graph; it takes any table that begins with two IDs
_UNKNOWN_HINT = (
    "; an edge list of names takes --format edges --id-type string, a list of triples --format triples, "
    "a table --nodes or --edges"
)
_OTHERS_HINT = "; a list of triples takes --format triples, a table --nodes or --edges"
_RECORD_BYTES = 256  # more than the first key takes
_PROPERTY = re.compile(r"(?m)^graph\.[^\s=]*?\.(directed|edge-properties\.names)\s*=\s*([^\r\n]*?)\s*$")
_DATE = re.compile(r"[0-9]{4}[-/.][0-9]{1,2}[-/.][0-9]{1,2}|[0-9]{1,2}[-/.][0-9]{1,2}[-/.][0-9]{4}")
_CODE = re.compile(rb"\A\s*[{\[<]|[\x00-\x08]")  # of documents, whose lines are no records
_SHOWN = 20  # characters of a field
_LOOK_ROWS, _LOOK_FILES = 20, 64  # of a folder, to tell whether its files are the parts of one table


def sniff(storage: Storage, urls: Sequence[str]) -> Sniffed:
    """Ask every format whether the input looks like it, and return the bid that stands out.

    ``urls`` are inputs as the user named them: files, folders, globs. The first file that is not blank decides, or of edge
    lists the first with more than a header. Raises UsageError where no format, or more than one, is likely, and for a store or
    an export; DataError where the file is binary data.
    """
    from graphprep.decoders.looks.text_head import is_header_alone

    metadata = chunked_metadata(storage, urls)
    if metadata is not None:
        head, complete = _head(storage, metadata)
        _refuse_store(urls[0], head)
        bid = bid_of("chunked", SniffedFile(metadata, head, complete))
        if bid is not None:
            return bid
    if len(urls) == 1 and storage.is_dir(urls[0]):
        _refuse_export(storage, urls[0])
        _refuse_graphalytics(storage, urls[0])
        bids = _folder_bids(storage, urls[0])
        if bids:
            return max(bids, key=lambda bid: bid.confidence)
    _refuse_half_store(storage, urls)
    found = Sniffed(_EMPTY, 1.0, ("--format", _EMPTY))
    files = storage.expand(urls).files
    for url in files:
        file = SniffedFile(url, *_head(storage, url))
        if file.head.strip() or not file.complete:
            found = _choose_for(storage, urls, file)
            if found.decoder != _EMPTY or len(files) == 1 or not is_header_alone(file):
                break
    return found


class TablesError(UsageError):
    """The input is a folder of several tables, which does not say by itself what they are."""


class UnknownFormatError(UsageError):
    """Nobody bids for the input: perhaps it is a table."""


class NodeTableError(UsageError):
    """The input is read as edges, but looks like a table of nodes."""


def refuse_node_table(storage: Storage, urls: Sequence[str]) -> None:
    """Raise NodeTableError where the first two columns are called as those of nodes are, and no ID stands twice in the first.

    The first file that is not blank is looked at.
    """
    from graphprep.decoders.looks.text_head import later_keys, name_nodes

    heads = (SniffedFile(url, *_head(storage, url)) for url in storage.expand(urls).files)
    file = next((one for one in heads if one.head.strip()), None)
    names, ids = _names_and_ids(storage, file) if file is not None else ((), ())
    if file is None or not name_nodes(names) or not ids or len(set(ids)) < len(ids):
        return
    shown = display_url(file.url)
    stem = re.sub(r"[^\w-].*", "", shown.rpartition("/")[2]) or "node"
    keys = later_keys(names)
    ends = f"--src-col {keys[0]} --dst-col {keys[1]}" if len(keys) > 1 else "--src-col and --dst-col"
    nodes = f"give --nodes {stem}={shown}"
    rest = f"if these are edges, {ends} say between what, and --format edges takes the first two columns"
    raise NodeTableError(
        f"this looks like a table of nodes, not of edges: no {names[0]!r} stands twice, and {names[1]!r} is no end of an edge",
        place=shown,
        fix=f"{nodes}; {rest}",
    )


def _names_and_ids(storage: Storage, file: SniffedFile) -> tuple[Sequence[str], Sequence[object]]:
    """Return the names of a table's columns, and what the first holds at the file's beginning; none without a header."""
    from graphprep.decoders.looks.text_head import PARQUET_MAGIC, find_delimiter, is_words, iter_lines, name_nodes, split_text

    if file.head.startswith(PARQUET_MAGIC):
        from graphprep.decoders.edges.table import first_ids

        with storage.open(file.url) as handle:
            return first_ids(handle, display_url(file.url), name_nodes)
    lines = list(iter_lines(file.head, complete=file.complete))
    try:
        names = split_text(file.url, lines[0], find_delimiter(lines[0].text)) if lines else []
        if not is_words(names) or not name_nodes([name.strip() for name in names]):
            return (), ()
        mark = find_delimiter(lines[-1].text)
        return [name.strip() for name in names], [split_text(file.url, line, mark)[0] for line in lines[1:]]
    except DataError:  # decoding says where
        return (), ()


def _choose_for(storage: Storage, urls: Sequence[str], file: SniffedFile) -> Sniffed:
    """Let the first file of the inputs decide, unless they are a folder of tables that differ.

    Raises TablesError.
    """
    refused: UsageError | DataError | None = None
    try:
        found = _choose(file)
        if found.decoder != _EMPTY:
            return found
    except (UsageError, DataError) as error:
        refused = error
    if len(urls) == 1 and storage.is_dir(urls[0]):
        from graphprep.decoders.tables.samples import sample_folder

        folder = sample_folder(storage, urls[0], _LOOK_ROWS, _LOOK_FILES)
        if folder.differs or (refused is not None and folder.is_several):
            shown = display_url(urls[0])
            raise TablesError(
                "this folder holds several tables, and does not say which are nodes and which are edges",
                place=shown,
                fix=f"run graphprep info {shown} > graph.yaml, look at what it guessed, and convert graph.yaml",
            )
    if refused is not None:
        raise refused
    return found


def chunked_metadata(storage: Storage, urls: Sequence[str]) -> str | None:
    """Return the URL of metadata.json where the only input is a folder that holds one, or that file itself."""
    if len(urls) != 1:
        return None
    if urls[0].rpartition("/")[2] == METADATA_NAME:
        return urls[0]
    if not storage.is_dir(urls[0]):
        return None
    inside = storage.join(urls[0], METADATA_NAME)
    storage.refuse_stream(inside)
    return inside if storage.exists(inside) else None


def _head(storage: Storage, url: str) -> tuple[bytes, bool]:
    head = storage.head(url, _HEAD_BYTES + 1)
    return head[:_HEAD_BYTES], len(head) <= _HEAD_BYTES


def _choose(file: SniffedFile) -> Sniffed:
    _refuse_foreign(file)
    bids = _bids(file, known_decoders())
    bids.sort(key=attrgetter("confidence"), reverse=True)
    first, second = [*map(attrgetter("confidence"), bids), 0.0, 0.0][:2]
    if first >= _LEAST_CONFIDENCE and (second < _LEAST_CONFIDENCE or first - second >= _LEAST_MARGIN):
        return bids[0]
    if not bids:
        _refuse_binary(file)
    names = [bid.decoder for bid in bids if min(first, bid.confidence) >= _LEAST_CONFIDENCE or first < _LEAST_CONFIDENCE]
    guess = f": it may be {' or '.join(names)}" if names else ""
    seen = "" if names else _columns_hint(file)
    hint = "" if names else (_OTHERS_HINT if seen else _UNKNOWN_HINT) + _delimiter_hint(file.head)
    error = UsageError if names else UnknownFormatError
    raise error(
        f"cannot tell the format{guess}",
        place=file.url,
        fix=f"{seen}name it with --format: {', '.join(names or known_decoders())}{hint}",
    )


def refuse_foreign(storage: Storage, urls: Sequence[str], name: str) -> None:
    """Raise DataError where the first files of an input are of a format that is not read, whatever the ``name`` of the decoder.

    Raises UsageError for a store or an export.

    A server is asked for one file; what is no text is not looked at, nor for decoders that others bring.
    """
    if name not in _OF_TEXT or name not in own_decoders():
        return
    refuse_made(storage, urls)
    files = storage.expand(urls).files
    for url in files[:_LOOK_FILES] if all(map(storage.is_local, files[:_LOOK_FILES])) else files[:1]:
        _refuse_foreign(SniffedFile(url, *_head(storage, url)))


def _refuse_foreign(file: SniffedFile) -> None:
    foreign = tell_foreign(file)
    if foreign is not None:
        raise foreign.refusal(file.url)


def tell_foreign(file: SniffedFile) -> Foreign | None:
    """Tell a format that is known but not read."""
    from graphprep.decoders.looks.formats import FOREIGN_LOOKS
    from graphprep.decoders.looks.magic import tell_binary

    binary = tell_binary(file.url.lower(), file.head)
    if binary is not None:
        return binary
    for ending, mark, found in FOREIGN_LOOKS:
        if file.url.lower().endswith(ending) and mark.search(file.head):
            told = found(file) if callable(found) else found
            if told is not None:
                return told
    return None


def _columns_hint(file: SniffedFile) -> str:
    """Say how edges of names are read, with the columns of the first line, where all lines have as many."""
    from graphprep.decoders.looks.text_head import find_delimiter, iter_lines, split_text

    lines = list(itertools.islice(iter_lines(file.head, complete=file.complete), _LOOK_ROWS))
    try:
        rows = [split_text(file.url, line, find_delimiter(line.text)) for line in lines]
    except DataError:
        return ""
    if len({len(row) for row in rows}) != 1 or len(rows[0]) < 2 or _CODE.search(file.head[:_RECORD_BYTES]):
        return ""
    shown = [repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…") for text in rows[0]]
    more = f" (and {', '.join(shown[2:5])}{', …' if len(shown) > 5 else ''})" if len(shown) > 2 else ""
    if any(_DATE.match(text) for text in (row[0] for row in rows)):
        positions = " ".join(f"{position}: {text}" for position, text in enumerate(shown[:8]))
        return f"name the columns of both ends with --src-col and --dst-col, by position ({positions}); else "
    return f"if these are edges of names, such as {shown[0]} to {shown[1]}{more}, add --id-type string; else "


def _delimiter_hint(head: bytes) -> str:
    """Say how edges are read whose first two lines have as many ``;`` or ``|``, and no comma or tab."""
    lines = [line for line in head.splitlines() if line.strip() and line[:1] not in (b"#", b"%")][:2]
    for mark in (b";", b"|"):
        counts = {line.count(mark) for line in lines if not re.search(rb"[,\t]", line)}
        if len(lines) == 2 and len(counts) == 1 and counts != {0}:
            return f"; columns between {mark.decode()!r} take --format edges --delimiter {mark.decode()!r}"
    return ""


def bid_of(name: str, file: SniffedFile) -> Sniffed | None:
    """Ask one format."""
    return next(iter(_bids(file, [name])), None)


def _bids(file: SniffedFile, names: Sequence[str]) -> list[Sniffed]:
    """Ask formats. A decoder that is installed but cannot be loaded has no say."""
    from graphprep.decoders.looks.formats import FILE_LOOKS

    ours = own_decoders()
    bids: list[Sniffed] = []
    for name in names:
        bid: Sniffed | None = None
        if name in ours:
            mark, look = FILE_LOOKS.get(name, (None, None))
            bid = look(file) if mark is not None and look is not None and mark.search(file.head) else None
        elif isinstance(installed := _installed(name), SniffsFiles):
            bid = installed.sniff(file)
        if bid is not None:
            bids.append(bid if bid.flags else replace(bid, flags=("--format", bid.decoder)))
    return bids


def _folder_bids(storage: Storage, url: str) -> list[Sniffed]:
    """Ask every format whether it knows a folder as a whole."""
    from graphprep.decoders.looks.formats import FOLDER_LOOKS

    ours = own_decoders()
    bids: list[Sniffed] = []
    for name in known_decoders():
        bid: Sniffed | None = None
        if name in ours:
            bid = FOLDER_LOOKS[name](storage, url) if name in FOLDER_LOOKS else None
        elif isinstance(installed := _installed(name), SniffsFolders):
            bid = installed.sniff_folder(storage, url)
        if bid is not None:
            bids.append(bid if bid.flags else replace(bid, flags=("--format", bid.decoder)))
    return bids


def _installed(name: str) -> object:
    try:
        return find_decoder(name)
    except UsageError:
        return None


def refuse_made(storage: Storage, urls: Sequence[str]) -> None:
    """Raise UsageError where the input is a folder that graphprep made: a store, what is left of one, or an export."""
    if len(urls) == 1 and storage.is_dir(urls[0]):
        metadata = storage.join(urls[0], METADATA_NAME)
        if storage.exists(metadata):
            _refuse_store(urls[0], storage.head(metadata, _RECORD_BYTES))
        _refuse_export(storage, urls[0])
    _refuse_half_store(storage, urls)


def _refuse_store(url: str, metadata: bytes) -> None:
    """Raise UsageError where metadata.json is a store's: its first key says so."""
    if _begins_with(STORE_FORMAT, metadata):
        raise UsageError(
            "this is a graphprep store, not raw input",
            place=display_url(url),
            fix="give its folder to graphprep info, which shows what is in it, or to graphprep validate, which checks it",
        )


def _refuse_half_store(storage: Storage, urls: Sequence[str]) -> None:
    """Raise UsageError where a folder has a store's partition, but no metadata.json."""
    for url in urls if len(urls) == 1 else filter(storage.is_local, urls):  # servers are not asked of each file
        if not storage.is_dir(url) or storage.exists(storage.join(url, METADATA_NAME)):
            continue
        if storage.exists(storage.join(url, f"{part_name(0, 1)}/{MANIFEST_NAME}")):
            raise UsageError(
                f"this is no whole store: it has no {METADATA_NAME}", place=display_url(url), fix="convert its raw input again"
            )


def _refuse_export(storage: Storage, url: str) -> None:
    """Raise UsageError where a folder is what ``graphprep export`` wrote: it says which of its files can be converted."""
    record = storage.join(url, RECORD_NAME)
    if not storage.exists(record) or not _begins_with(EXPORT_FORMAT, storage.head(record, _RECORD_BYTES)):
        return
    files = [one.url for one in storage.list_dir(url) if not one.is_dir and one.name != RECORD_NAME][:_LOOK_FILES]
    readable = next((file for file in files if _is_known(storage, file)), None)
    instead = f"give raw files; see {RECORD_NAME} in it" if readable is None else f"name a file in it: {display_url(readable)}"
    raise UsageError("this is what graphprep exported, not raw input", place=display_url(url), fix=instead)


def _refuse_graphalytics(storage: Storage, url: str) -> None:
    """Raise UsageError where a folder holds a graph of LDBC Graphalytics: it says how its properties want it to be read."""
    files = {one.name: one.url for one in storage.list_dir(url) if not one.is_dir}
    for name, file in files.items():
        stem = name.removesuffix(".properties")
        if stem == name or not {f"{stem}.v", f"{stem}.e"} <= files.keys():
            continue
        found = dict(_PROPERTY.findall(_head(storage, file)[0].decode(errors="replace")))
        nodes, edges = (shlex.quote(display_url(files[f"{stem}.{ending}"])) for ending in "ve")
        weight = " --weight-col 2" if found.get("edge-properties.names") == "weight" else ""
        both = " --undirected" if found.get("directed", "true").lower() == "false" else ""
        raise UsageError(
            f"this is a folder of LDBC Graphalytics, whose graph {stem!r} is two tables without headers",
            place=display_url(url),
            fix=f"give --nodes v={nodes} --edges v:e:v={edges} --delimiter ' ' --header no{weight}{both}",
        )


def _begins_with(text: str, document: bytes) -> bool:
    """Return whether a JSON document's first key is its format, and this one."""
    return re.match(rb'\s*\{\s*"format"\s*:\s*"' + text.encode() + rb'"', document) is not None


def _is_known(storage: Storage, url: str) -> bool:
    try:
        _choose(SniffedFile(url, *_head(storage, url)))
    except (UsageError, DataError):
        return False
    return True


def _refuse_binary(file: SniffedFile) -> None:
    """Raise DataError where a byte stands that no text has, UsageError for an Arrow file, which is read as a table alone."""
    if file.head.startswith(b"ARROW1"):
        fix = "name it with --edges SRC:REL:DST=FILE, or with --nodes TYPE=FILE"
        raise UsageError("this is an Arrow file, which does not say what it is a table of", place=file.url, fix=fix)
    for at, byte in enumerate(file.head):
        if byte < 32 and byte not in b"\t\n\r":
            line = file.head.count(b"\n", 0, at) + 1
            column = at - file.head.rfind(b"\n", 0, at)
            raise DataError(
                f"this is binary data: found byte 0x{byte:02x}",
                place=f"{file.url}:{line}:{column}",
                fix="name text files, Parquet files of edges, or the folder of a chunked graph",
            )
