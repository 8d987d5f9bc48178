"""Formats that are not read, told by their first bytes, with what converts them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from graphprep.model.protocols import SniffedFile

# Each line is matched in one way only: else a file that is none of these takes for ever.
_GML = re.compile(
    rb"\s*(?:(?:#[^\n]*|[A-Za-z]\w*[ \t]+(?:\"[^\"\n]*\"|[^\s\[\"]+)[ \t\r]*)\n\s*)*graph\s*\[",
    re.ASCII,
)
_PAJEK = re.compile(rb"\s*(?:%[^\n]*\n\s*)*\*(?:vertices|network)\b", re.IGNORECASE)
_DIMACS = re.compile(rb"(?:c(?:[ \t][^\n]*|\r)?\n|[ \t\r]*\n)*p[ \t]+([a-z]+)[ \t]+[0-9]+[ \t]+[0-9]+")
_MARKDOWN = re.compile(rb"\s*\|[^\n]*\|[ \t]*\r?\n\s*\|[ \t]*:?-+")
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_IN_PYTHON = "convert it in Python: graphprep.convert(networkx.{}, OUT)"  # with attributes, and edges in both directions
_IGRAPH = "; igraph.Graph.{}(FILE).to_networkx() reads it, too"
# JSON of networkx: what it is, how it is read, and the keys that tell it; the most telling first.
_JSON = (
    ("node-link JSON", "node_link_graph", ", edges='links'", ("directed", "nodes", "links")),
    ("node-link JSON", "node_link_graph", ", edges='edges'", ("directed", "nodes", "edges")),
    ("adjacency JSON", "adjacency_graph", "", ("directed", "nodes", "adjacency")),
    ("Cytoscape JSON", "cytoscape_graph", "", ("data", "elements")),
)


@dataclass(frozen=True)
class Foreign:
    """A format that is not read: what it is, and how to make something that is."""

    what: str
    fix: str


def tell_foreign(file: SniffedFile) -> Foreign | None:
    """Tell a format that is known but not read."""
    first = file.head.lstrip()[:1]
    if first == b"<":
        return _tell_xml(file.head)
    if first == b"{":
        return _tell_json(file)
    if file.url.lower().endswith(".graph") and _CONTROL.search(file.head):
        fix = "write it as arcs: 'webgraph to arcs NAME' of webgraph-rs for LAW's BVGraph, SaveEdgeList of SNAP for SNAP's"
        return Foreign("a binary .graph of LAW or SNAP", fix)
    return _tell_text(file.head)


def _tell_text(head: bytes) -> Foreign | None:
    if dimacs := _DIMACS.match(head):
        return _tell_dimacs(dimacs[1])
    known = (
        (_GML, Foreign("a GML file", _IN_PYTHON.format("read_gml(FILE)") + _IGRAPH.format("Read_GML"))),
        (_PAJEK, Foreign("a Pajek file", _IN_PYTHON.format("read_pajek(FILE)") + _IGRAPH.format("Read_Pajek"))),
        (_MARKDOWN, Foreign("a table as Markdown has it", "write the cells of a row with tabs between them, without a border")),
    )
    return next((foreign for pattern, foreign in known if pattern.match(head)), None)


def _tell_json(file: SniffedFile) -> Foreign | None:
    from graphprep.decoders.looks.formats import document_keys

    keys = set(document_keys(file))
    for name, reader, option, telling in _JSON:
        if keys.issuperset(telling):
            read = _IN_PYTHON.format(f"{reader}(json.load(open(FILE)){option})")
            return Foreign(f"networkx's {name}, one document with all of a graph", read)
    return None


def _tell_xml(head: bytes) -> Foreign | None:
    if b"<graphml" in head:
        return Foreign("a GraphML file", _IN_PYTHON.format("read_graphml(FILE)") + _IGRAPH.format("Read_GraphML"))
    if b"<gexf" in head:
        return Foreign("a GEXF file", _IN_PYTHON.format("read_gexf(FILE)"))
    return None


def _tell_dimacs(problem: bytes) -> Foreign:
    """Tell the arcs of shortest paths (``a 1 2 7``) from edges to be coloured (``e 1 2``)."""
    line, weight = ("a", " --weight-col 2") if problem in (b"sp", b"max", b"min") else ("e", "")
    take = f"sed -n 's/^{line} //p' FILE | graphprep convert - OUT --format edges --index-base 1{weight}"
    return Foreign(f"a DIMACS file, whose edges begin with {line!r}", f"give the edges alone: {take}")


__all__ = ["Foreign", "tell_foreign"]
