"""What formats look like: bids of ours for a file's first bytes, and for folders, by name; and those that are not read.

No decoder is loaded for it. A bid says how sure it is, from 0 to 1. Flags that a bid leaves out are ``--format`` and the
format's name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from graphprep.decoders.looks.dtype_words import dtype_name
from graphprep.decoders.looks.magic import Foreign
from graphprep.decoders.looks.metis_header import Header, parse_header, settle_header
from graphprep.decoders.looks.text_head import MATRIX_MARKET, HeadLine, look_for_edges, split_line
from graphprep.model.errors import DataError
from graphprep.model.metadata import EXPORT_FORMAT, METADATA_NAME, STORE_FORMAT
from graphprep.model.protocols import Sniffed, SniffedFile
from graphprep.storage.read.npy import MAGIC as NPY_MAGIC

if TYPE_CHECKING:
    from graphprep.storage.read.urls import Storage

ZIP_MAGICS = (b"PK\x03\x04", b"PK\x05\x06")
GRAPHBOLT_METADATA = "metadata.yaml"
RECORD_ARRAY = re.compile(rb"\s*(?=\[)")
RECORD_OVER_LINES = re.compile(rb"\s*(?=\{[ \t]*(?:\r?\n|\"[^\"\n]*\"[ \t]*:[^\n]*[,{\[][ \t]*\r?\n))")
_HAS_ID = re.compile(rb'"node_id"\s*:')
_DEEPGNN_LINES = 32
_TSV_FEATURES = re.compile(r"(?:(?:[fiud][0-9]*|b|double|binary):[^;]*|)(?:;(?:(?:[fiud][0-9]*|b|double|binary):[^;]*|))*")
_TSV_NEIGHBOR = re.compile(r" *\d+ *, *\d+ *(?:,.*)?")
_TRIPLE_LINES, _LEAST_TRIPLES = 200, 3
_WORD = re.compile(rb"[^\t]*[A-Za-z_/][^\t]*")
_MOST_RELATIONS = 0.5  # of the lines, before the middle column looks like names of their own
_METIS_ENDINGS = (".graph", ".metis", ".graph.gz", ".metis.gz")
_NEO4J_MARK = re.compile(rb":(?:ID|START_ID|END_ID)(?![A-Za-z_])")
_NEO4J_FILES, _NEO4J_BYTES = 16, 1 << 12  # each is a request where a server has them
_GRAPHSTORM_KEYS = (b'"node_type"', b'"node_id_col"', b'"source_id_col"', b'"dest_id_col"', b'"relation"')
_GRAPH_KEYS = frozenset(
    (
        *("graph_name", "id_space", "id_type", "columns", "drop", "nodes", "edges", "node_data", "edge_data"),
        *("labels", "splits", "seeds", "categories", "comments"),
    )
)
# Formats that are not read, and what converts them.
# Each line is matched in one way only: else a file that is none of these takes for ever.
_GML = re.compile(
    rb"\A\s*(?:(?:#[^\n]*|[A-Za-z]\w*[ \t]+(?:\"[^\"\n]*\"|[^\s\[\"]+)[ \t\r]*)\n\s*)*graph\s*\[",
    re.ASCII,
)
_PAJEK = re.compile(rb"\A\s*(?:%[^\n]*\n\s*)*\*(?:vertices|network)\b", re.IGNORECASE)
_DIMACS = re.compile(rb"\A(?:c(?:[ \t][^\n]*|\r)?\n|[ \t\r]*\n)*p[ \t]+([a-z]+)[ \t]+[0-9]+[ \t]+[0-9]+")
_MARKDOWN = re.compile(rb"\A\s*\|[^\n]*\|[ \t]*\r?\n\s*\|[ \t]*:?-+")
# A line with an IRI or a blank node and an IRI, then whatever, and a full stop; the first that is neither blank nor a comment.
_BLANK_LINES = rb"\A(?:[ \t\r]*(?:#[^\n]*)?\n)*[ \t]*"
_RDF_NODE = rb"(?:<[^<>\s]*>|_:[^\s<>\"]+)"
_RDF_LITERAL = rb"\"(?:[^\"\\\n]|\\.)*\"[^\s<]*(?:<[^<>\s]*>)?"
_RDF_LINE = re.compile(
    b"%b(%b[ \t]*<[^<>\\s]*>[ \t]*(?:%b|%b)(?:[ \t]+(?P<graph>%b))?[ \t]*(?P<end>[.;,])[ \t\r]*(?:#[^\n]*)?(?:\n|\\Z))"
    % (_BLANK_LINES, _RDF_NODE, _RDF_NODE, _RDF_LITERAL, _RDF_NODE)
)
_TURTLE = re.compile(_BLANK_LINES + rb"(@(?:prefix|base)[ \t]|(?:prefix[ \t]+[^\s:]*:|base)[ \t]*<)", re.IGNORECASE)
_RDF_TO_TRIPLES = r"sed -nE 's/^\s*(<[^>]*>|_:\S+)\s*(<[^>]*>)\s*(<[^>]*>|_:\S+).*/\1\t\2\t\3/p' FILE > triples.tsv"
_IN_PYTHON = "convert it in Python: graphprep.convert(networkx.{}, OUT)"  # with attributes, and edges in both directions
_IGRAPH = "; igraph.Graph.{}(FILE).to_networkx() reads it, too"
# JSON of networkx: what it is, how it is read, and the keys that tell it; the most telling first.
_JSON = (
    ("node-link JSON", "node_link_graph", ", edges='links'", ("directed", "nodes", "links")),
    ("node-link JSON", "node_link_graph", ", edges='edges'", ("directed", "nodes", "edges")),
    ("adjacency JSON", "adjacency_graph", "", ("directed", "nodes", "adjacency")),
    ("Cytoscape JSON", "cytoscape_graph", "", ("data", "elements")),
)
_OGB_LISTS = ("num-node-list.csv.gz", "num-node-list.csv", "num-node-dict.csv.gz", "num-node-dict.csv")


# ---------------------------------------------------------------------------------------------------- DeepGNN's


def look_for_edgelist(file: SniffedFile) -> Sniffed | None:
    """Look for node lines (-1 in the second column) and dtype words behind the fixed columns."""
    lines = _first_lines(file)
    bids = [_bid_for_edgelist(lines, mark, file.head) for mark in (",", "\t", ";", "|", " ")] if lines else []
    return max(filter(None, bids), key=attrgetter("confidence"), default=None)


def look_for_json(file: SniffedFile) -> Sniffed | None:
    """Bid where the first line that is not blank is an object with a node's keys."""
    head = file.head.lstrip(b" \t\r\n")
    line, is_whole = head.split(b"\n", 1)[0], b"\n" in head or file.complete
    confidence = 0.0
    if _HAS_ID.search(head) and (RECORD_ARRAY.match(head) or RECORD_OVER_LINES.match(head)):
        return Sniffed("json", 0.9)  # its plan says what is wrong
    if line.startswith(b"{") and b'"node_id"' in line:
        confidence = 0.9  # a node with many edges
    if confidence and is_whole:
        confidence = 0.95 if _is_record(line) else 0.6
    return Sniffed("json", confidence) if confidence else None


def look_for_tsv(file: SniffedFile) -> Sniffed | None:
    """Look for rows with features (``f:1 2``) in the fourth cell or neighbours (``5,0``) in the fifth."""
    lines = _first_lines(file)
    if not file.complete and b"\n" not in file.head:
        lines = [line.rpartition("|")[0] for line in lines]  # the last neighbour may be torn
    rows = [line.split("\t") for line in lines]
    if not rows or not all(_is_tsv_row(row) for row in rows):
        return None
    has_features = any(len(row) > 3 and row[3] for row in rows)
    has_neighbors = any(len(row) > 4 and row[4] for row in rows)
    if not has_features and not has_neighbors:
        return None
    return Sniffed("tsv", 0.95 if has_features else 0.8)


def _first_lines(file: SniffedFile) -> list[str]:
    """Return the first whole lines that are not blank; what there is of the first one, where it is longer than the head."""
    lines = file.head.split(b"\n")
    if not file.complete and len(lines) > 1:
        lines.pop()  # perhaps torn
    texts = (line.decode("utf-8", "replace").removesuffix("\r") for line in lines[: 4 * _DEEPGNN_LINES])
    return [text for text in texts if text.strip(" \t")][:_DEEPGNN_LINES]


def _bid_for_edgelist(lines: list[str], delimiter: str, head: bytes) -> Sniffed | None:
    """Judge lines split at a delimiter; a node of the file's beginning may come after them."""
    rows = [[column.strip(" \t") for column in line.split(delimiter)] for line in lines]
    if not all(len(row) >= 2 and _is_int(row[0]) and _is_int(row[1]) for row in rows):
        return None
    mark = re.escape(delimiter.encode())
    has_nodes = re.search(rb"(?m)^[^\n%b]*%b[ \t]*-1[ \t]*(?:%b|\r?$)" % (mark, mark, mark), head) is not None
    temporal = False
    fit = [_is_edgelist_row(row, 4) for row in rows]
    if not all(fit) and all(_is_edgelist_row(row, 6) for row in rows):
        temporal, fit = True, [True]
    has_features = all(fit) and any(len(row) > (6 if temporal else 4) for row in rows)
    if has_nodes:
        confidence = 0.95 if all(fit) else 0.5
    elif has_features:
        confidence = 0.8
    elif all(fit) and not temporal and delimiter == ",":
        confidence = 0.3  # four numbers: an edge with type and weight, or anything
    else:
        return None
    flags: tuple[str, ...] = ("--format", "edgelist")
    flags += ("--delimiter", delimiter) if delimiter != "," else ()
    flags += ("--temporal",) if temporal else ()
    options: dict[str, object] = {"delimiter": delimiter} if delimiter != "," else {}
    if temporal:
        options["temporal"] = True
    return Sniffed("edgelist", confidence, flags, options)


def _is_edgelist_row(row: list[str], num_fixed: int) -> bool:
    """Say whether a row has its fixed columns, and then nothing or a dtype."""
    if len(row) < num_fixed or not all(_is_int(text) for text in (row[2], *row[4:num_fixed])):
        return False
    try:
        float(row[3])
    except ValueError:
        return False
    return len(row) == num_fixed or row[num_fixed] in ("", "binary") or dtype_name(row[num_fixed]) is not None


def _is_int(text: str) -> bool:
    return text.removeprefix("-").isdigit()


def _is_record(line: bytes) -> bool:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(record, dict) and "node_id" in record


def _is_tsv_row(row: list[str]) -> bool:
    """Say whether cells look like a node: numbers, features, neighbours."""
    if len(row) < 3 or any(row[5:]) or not row[0].strip().isdigit() or not (row[1].strip() or "0").isdigit():
        return False
    try:
        float(row[2] or 0)
    except ValueError:
        return False
    cells = [cell[1:-1].replace('""', '"') if len(cell) > 1 and cell[0] == cell[-1] == '"' else cell for cell in row[3:]]
    if cells and not _TSV_FEATURES.fullmatch(cells[0]):
        return False
    return len(cells) < 2 or not cells[1] or all(_TSV_NEIGHBOR.fullmatch(item) for item in cells[1].split("|"))


# ---------------------------------------------------------------------------------------------------- triples


def look_for_triples(file: SniffedFile) -> Sniffed | None:
    """Bid for lines of three columns between tabs, of which the middle one repeats and is made of words."""
    lines = file.head.splitlines()[: _TRIPLE_LINES + 1]
    if not file.complete and len(lines) <= _TRIPLE_LINES:
        lines = lines[:-1]
    try:
        rows = [split_line("", HeadLine(1, line), b"\t") for line in lines[:_TRIPLE_LINES] if line.strip()]
    except DataError:
        return None
    if len(rows) < _LEAST_TRIPLES or any(len(row) != 3 or not all(row) for row in rows):
        return None
    heads, relations, tails = ({row[i] for row in rows} for i in range(3))
    if len(relations) > min(_MOST_RELATIONS * len(rows), len(tails)) or not all(map(_WORD.fullmatch, relations)):
        return None
    if any(map(_WORD.fullmatch, heads)) and not any(map(_WORD.fullmatch, tails)):
        return None  # names of both ends, and a weight
    return Sniffed("triples", 0.85)


# ---------------------------------------------------------------------------------------------------- arrays and matrices


def look_for_arrays(file: SniffedFile) -> Sniffed | None:
    """Bid for ``.npy`` files, and archives that begin with one."""
    if file.head.startswith(NPY_MAGIC):
        return Sniffed("arrays", 1.0)
    name = file.head[30 : 30 + int.from_bytes(file.head[26:28], "little")]
    is_npz = file.head[:4] in ZIP_MAGICS and (name.endswith(b".npy") or file.url.endswith(".npz"))
    return Sniffed("arrays", 1.0) if is_npz else None


def look_for_mtx(file: SniffedFile) -> Sniffed | None:
    """Recognise the banner."""
    return Sniffed("mtx", 1.0) if file.head[: len(MATRIX_MARKET)].lower() == MATRIX_MARKET else None


def look_for_metis(file: SniffedFile) -> Sniffed | None:
    """Bid where the first line is a header; how sure depends on the file's name, and on whether the counts are right."""
    lines = file.head.splitlines() if file.complete else file.head.splitlines()[:-1]
    numbers = [i for i, line in enumerate(lines) if line.strip() and not line.lstrip().startswith(b"%")]
    if not numbers:
        return None
    is_named = file.url.lower().endswith(_METIS_ENDINGS)
    if not all(field.isdigit() for field in lines[numbers[0]].split()):
        return None
    try:
        header = parse_header(lines[numbers[0]], file.url, numbers[0] + 1)
    except DataError:
        return None
    if not header.num_nodes:
        return None
    if file.complete and not _counts_are_right(header, lines[numbers[0] + 1 :]):
        return Sniffed("metis", 0.55) if is_named else None  # reading says what is wrong, unless an edge list is called so
    return Sniffed("metis", 1.0 if is_named else 0.7) if file.complete or is_named else None


def _counts_are_right(header: Header, lines: Sequence[bytes]) -> bool:
    """Return whether as many nodes and edges follow as the header says."""
    rows = [line for line in lines if not line.lstrip().startswith(b"%")]
    if len(rows) < header.num_nodes or any(line.strip() for line in rows[header.num_nodes :]):
        return False
    try:
        settle_header(header, sum(len(line.split()) for line in rows))
    except DataError:
        return False
    return True


# ---------------------------------------------------------------------------------------------------- metadata and folders


def look_for_chunked(file: SniffedFile) -> Sniffed | None:
    """Recognise a chunked graph's metadata.json; a store's is none."""
    if not file.head.lstrip().startswith(b"{"):
        return None
    if file.complete:
        try:
            value = json.loads(file.head)
        except (ValueError, RecursionError):
            return None
        if not isinstance(value, dict) or value.get("format") in (STORE_FORMAT, EXPORT_FORMAT):
            return None
        return Sniffed("chunked", 1.0) if {"node_type", "edge_type"} <= value.keys() else None
    is_named = file.url.endswith(METADATA_NAME) and STORE_FORMAT.encode() not in file.head
    return Sniffed("chunked", 0.9) if is_named and b'"node_type"' in file.head else None


def document_keys(file: SniffedFile) -> list[str]:
    """List the outermost keys of what may be a YAML or JSON document, as far as its beginning shows them."""
    if file.head.lstrip()[:1] == b"{":
        return _json_keys(file.head.decode(errors="replace"))
    keys = []
    for line in file.head.decode(errors="replace").splitlines():
        if not line or line[0] in " \t#-":
            continue
        if line.startswith("---"):
            continue
        key, colon, rest = line.partition(":")
        if not colon or (rest and not rest[0].isspace()):
            return []
        keys.append(key.strip().strip("'\""))
    return keys


def _json_keys(text: str) -> list[str]:
    """List the keys of the outermost object; a document that is cut off shows those that come before the cut."""
    keys: list[str] = []
    decoder, depth, at = json.JSONDecoder(), 0, 0
    while at < len(text):
        char = text[at]
        if char == '"':
            try:
                word, at = decoder.raw_decode(text, at)
            except ValueError:
                return keys
            if depth == 1 and text[at:].lstrip()[:1] == ":":
                keys.append(word)
            continue
        depth += (char in "{[") - (char in "}]")
        at += 1
        if depth == 0 and char == "}":
            return keys if not text[at:].strip() else []  # several documents: JSON lines
    return keys


def look_for_graph(file: SniffedFile) -> Sniffed | None:
    """Bid for a YAML or JSON document whose outermost keys are a graph config's."""
    keys = set(document_keys(file))
    if not {"nodes", "edges"} & keys:
        return None
    return Sniffed("graph", 0.3 if keys - _GRAPH_KEYS else 0.9)


def look_for_graphstorm(file: SniffedFile) -> Sniffed | None:
    """Bid for a JSON object of ``nodes`` and ``edges`` with GraphStorm's keys in them."""
    keys = document_keys(file) if file.head.lstrip()[:1] == b"{" else []
    if not {"nodes", "edges"} & set(keys) or sum(key in file.head for key in _GRAPHSTORM_KEYS) < 2:
        return None
    return Sniffed("graphstorm", 0.95 if b'"gconstruct-' in file.head or b"_id_col" in file.head else 0.6)


def look_for_graphbolt(file: SniffedFile) -> Sniffed | None:
    """Bid for a YAML document with the outermost key ``graph`` and one of GraphBolt's others."""
    keys = set(document_keys(file))
    if not {"graph", "graph_topology"} & keys or not {"dataset_name", "feature_data", "tasks"} & keys:
        return None
    return Sniffed("graphbolt", 0.95)


def look_for_graphbolt_folder(storage: Storage, url: str) -> Sniffed | None:
    """Bid for a folder that holds a ``metadata.yaml``."""
    return Sniffed("graphbolt", 0.9) if storage.exists(storage.join(url, GRAPHBOLT_METADATA)) else None


def look_for_neo4j(file: SniffedFile) -> Sniffed | None:
    """Bid for text whose first line has a field ``:ID``, or ``:START_ID`` and ``:END_ID``."""
    return Sniffed("neo4j", 0.97) if is_neo4j_header(file.head) else None


def look_for_neo4j_folder(storage: Storage, url: str) -> Sniffed | None:
    """Bid for a folder with such a file in it."""
    files = [entry.url for entry in storage.list_dir(url) if not entry.is_dir and not entry.name.startswith((".", "_"))]
    found = any(is_neo4j_header(storage.head(file, _NEO4J_BYTES)) for file in files[:_NEO4J_FILES])
    return Sniffed("neo4j", 0.97) if found else None


def is_neo4j_header(head: bytes) -> bool:
    """Return whether the first line names a column of IDs as ``neo4j-admin database import`` does."""
    return _NEO4J_MARK.search(head.partition(b"\n")[0]) is not None


def look_for_ogb_folder(storage: Storage, url: str) -> Sniffed | None:
    """Bid for a folder with OGB's lists of counts, in it or in its folder ``raw``."""
    folder = url.rstrip("/") or "/"
    raw = "raw/" if storage.is_dir(storage.join(folder, "raw")) else ""
    found = any(storage.exists(storage.join(folder, f"{raw}{name}")) for name in _OGB_LISTS)
    return Sniffed("ogb", 0.95) if found else None


# What a file must have for a format to bid, and the bid: nobody need look closer at others.
FILE_LOOKS: Mapping[str, tuple[re.Pattern[bytes], Callable[[SniffedFile], Sniffed | None]]] = {
    "edgelist": (re.compile(rb"\A\s*-?[0-9\x80-\xff]"), look_for_edgelist),
    "json": (re.compile(rb"\A\s*[\[{]"), look_for_json),
    "tsv": (re.compile(rb"\A[\s\x1c-\x1f]*[0-9\x80-\xff]"), look_for_tsv),
    "chunked": (re.compile(rb"\A\s*\{"), look_for_chunked),
    "edges": (re.compile(rb""), look_for_edges),
    "arrays": (re.compile(rb"\A(?:\x93NUMPY|PK)"), look_for_arrays),
    "mtx": (re.compile(rb"\A%%"), look_for_mtx),
    "metis": (re.compile(rb"\A\s*[0-9%]"), look_for_metis),
    "graph": (re.compile(rb"nodes|edges|\\"), look_for_graph),
    "triples": (re.compile(rb"\t[^\t\r\n]*\t"), look_for_triples),
    "neo4j": (_NEO4J_MARK, look_for_neo4j),
    "graphstorm": (re.compile(rb"\A\s*\{"), look_for_graphstorm),
    "graphbolt": (re.compile(rb"graph|\\"), look_for_graphbolt),
}
FOLDER_LOOKS: Mapping[str, Callable[[Storage, str], Sniffed | None]] = {
    "neo4j": look_for_neo4j_folder,
    "graphbolt": look_for_graphbolt_folder,
    "ogb": look_for_ogb_folder,
}

# ---------------------------------------------------------------------------------------------------- what is not read


def _tell_json(file: SniffedFile) -> Foreign | None:
    keys = set(document_keys(file))
    for name, reader, option, telling in _JSON:
        if keys.issuperset(telling):
            read = _IN_PYTHON.format(f"{reader}(json.load(open(FILE)){option})")
            return Foreign(f"networkx's {name}, one document with all of a graph", read)
    return None


def _tell_xml(file: SniffedFile) -> Foreign | None:
    if b"<graphml" in file.head:
        return Foreign("a GraphML file", _IN_PYTHON.format("read_graphml(FILE)") + _IGRAPH.format("Read_GraphML"))
    if b"<gexf" in file.head:
        return Foreign("a GEXF file", _IN_PYTHON.format("read_gexf(FILE)"))
    return None


def _tell_dimacs(file: SniffedFile) -> Foreign | None:
    """Tell the arcs of shortest paths (``a 1 2 7``) from edges to be coloured (``e 1 2``)."""
    problem = _DIMACS.match(file.head)
    line, weight = ("a", " --weight-col 2") if problem and problem[1] in (b"sp", b"max", b"min") else ("e", "")
    take = f"sed -n 's/^{line} //p' FILE | graphprep convert - OUT --format edges --index-base 1{weight}"
    return Foreign(f"a DIMACS file, whose edges begin with {line!r}", f"give the edges alone: {take}")


def tell_rdf(file: SniffedFile) -> Foreign | None:
    """Tell N-Triples and N-Quads, and Turtle by its prefixes."""
    found = _RDF_LINE.match(file.head) or _TURTLE.match(file.head)
    if found is None:
        return None
    line = file.head.count(b"\n", 0, found.start(1)) + 1
    if found.re is _TURTLE or found["end"] != b".":
        first = "rapper -i turtle FILE > OUT.nt, or rdflib's Graph().parse(FILE).serialize('OUT.nt', 'nt')"
        return Foreign("Turtle (RDF)", f"write it as N-Triples, whose message says how to go on: {first}", line)
    what = "N-Quads (RDF)" if found["graph"] else "N-Triples (RDF)"
    return Foreign(what, f"convert what this writes, without the literals, with --format triples: {_RDF_TO_TRIPLES}", line)


# How the names of such files end, what they have, and what they are: the first that fits tells.
FOREIGN_LOOKS: tuple[tuple[str, re.Pattern[bytes], Foreign | Callable[[SniffedFile], Foreign | None]], ...] = (
    ("", re.compile(rb"\A\s*[#<_@pb]", re.IGNORECASE), tell_rdf),
    ("", re.compile(rb"\A\s*<"), _tell_xml),
    ("", re.compile(rb"\A\s*\{"), _tell_json),
    (
        ".graph",
        re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]"),
        Foreign(
            "a binary .graph of LAW or SNAP",
            "write it as arcs: 'webgraph to arcs NAME' of webgraph-rs for LAW's BVGraph, SaveEdgeList of SNAP for SNAP's",
        ),
    ),
    ("", _DIMACS, _tell_dimacs),
    ("", _GML, Foreign("a GML file", _IN_PYTHON.format("read_gml(FILE)") + _IGRAPH.format("Read_GML"))),
    ("", _PAJEK, Foreign("a Pajek file", _IN_PYTHON.format("read_pajek(FILE)") + _IGRAPH.format("Read_Pajek"))),
    (
        ".properties",
        re.compile(rb"(?m)^graph\.\S+\.vertex-file\s*="),
        Foreign("the properties of a graph of LDBC Graphalytics", "name the folder that it lies in, and the flags are told"),
    ),
    ("", _MARKDOWN, Foreign("a table as Markdown has it", "write the cells of a row with tabs between them, without a border")),
)

__all__ = [
    "FILE_LOOKS",
    "FOLDER_LOOKS",
    "FOREIGN_LOOKS",
    "GRAPHBOLT_METADATA",
    "RECORD_ARRAY",
    "RECORD_OVER_LINES",
    "ZIP_MAGICS",
    "is_neo4j_header",
]
