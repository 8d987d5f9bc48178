"""A folder of tables to a graph config: which tables are nodes, which are edges, and which columns join them.

Everything here is a guess; each stands in the config with what spoke for it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from graphprep.decoders.configs.graph_file import dump_graph, folder_of
from graphprep.decoders.tables.samples import Dialect, SampleColumn, SampledFolder, SampleTable, part_name, sample_folder
from graphprep.model.graph_config import EdgeTable, GraphConfig, NodeTable, TableConfig
from graphprep.model.shown.texts import lines_text

if TYPE_CHECKING:
    from graphprep.storage.read.urls import Storage

_SRC_NAMES = ("src", "source", "from", "head", "start", "u", "src_id", "source_id", "from_id", "start_id", "subject")
_DST_NAMES = (
    "dst",
    "target",
    "to",
    "tail",
    "end",
    "v",
    "dst_id",
    "target_id",
    "to_id",
    "end_id",
    "object",
    "dest",
    "destination",
)
_WORD = re.compile(r"[A-Z]?[^\W\d_A-Z]+|[A-Z]+(?![a-z])")
_LEAST_SHARED = 0.02  # of a column's values, to be IDs of a table of which only the beginning is known
# Of a column's values, to be IDs of a table that is known: by their values alone (in real folders up to 0.88 match by chance),
# and where the column is called so, too (there all match but for faults, and a small table has few values). What does not match
# stays a dangling key, which convert finds.
_LEAST_MATCHED = 0.95
_LEAST_CALLED = 0.5
_LEAST_DISTINCT = 0.95  # of the values of a column that is called like an ID: what stands twice is for convert to find
_DANGLING = "convert stops at the first value that is not, unless --on-missing-node says drop or create."
_SHOWN = 40  # characters of a value
_ID_ENDING = re.compile(r"[-_ ]?(?:id|ID|Id|key)$")
_COMPRESSED = re.compile(r"\.(gz|gzip|bz2|xz|zst)$", re.I)


@dataclass(frozen=True, repr=False)
class GuessedGraph:
    """A config, and what spoke for its entries: lines of comments by their path (``nodes[0]``; ``""`` is the top)."""

    config: GraphConfig
    comments: dict[str, list[str]]

    def yaml(self) -> str:
        """Write ``graph.yaml``."""
        return dump_graph(self.config, self.comments)

    def __repr__(self) -> str:
        return lines_text(self.yaml().splitlines())

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(repr(self))}</pre>"


def guess_graph(storage: Storage, url: str) -> GuessedGraph | None:
    """Guess the graph that the tables of a folder hold, or a single table; paths are written from the current folder.

    None where there are no tables, or the single one, in a file or in parts, has no names or no key.
    """
    folder = sample_folder(storage, url)
    is_dir = storage.is_dir(url)
    if is_dir and (folder.differs or folder.is_several):
        return _Guess(url, folder).graph()
    if not folder.tables or folder.tables[0].header is False:  # too little speaks for nodes
        return None
    guess = _Guess(url if is_dir else folder_of(url), folder)
    return guess.graph() if guess.types[0].key is not None else None


@dataclass
class _Type:
    """Tables of one kind of rows: part files, with and without a header. ``key`` is its column of IDs, if it has nodes."""

    name: str
    tables: list[SampleTable]
    columns: tuple[SampleColumn, ...]
    named: bool
    key: SampleColumn | None = None
    why: str = ""
    links: list[_Link] = field(default_factory=list)

    @property
    def files(self) -> str:
        """Name the files."""
        return ", ".join(table.path for table in self.tables)

    @property
    def is_whole(self) -> bool:
        """Return whether all rows were looked at."""
        return all(table.is_whole for table in self.tables)

    def at(self, column: SampleColumn) -> int:
        """Return a column's position."""
        return self.columns.index(column)


@dataclass(frozen=True)
class _Link:
    """A column whose values are IDs of a type; ``to`` None: of none that has a table. ``dangles``: some are not."""

    column: SampleColumn
    to: _Type | None
    why: str
    dangles: bool = False


class _Guess:
    """A folder's tables on their way to a config."""

    def __init__(self, url: str, folder: SampledFolder) -> None:
        self.url = url
        self.notes = [f"left out: {name} ({reason})" for name, reason in folder.others.items()]
        kept = self._without_twins(folder.tables)
        self.notes += [
            _header_note(table) for table in kept if not table.guess.is_sure and table.header == table.guess.is_header
        ]
        self.types = _merged(kept)
        for one in self.types:
            one.key, one.why = _find_key(one)
        self._find_links()
        self._leave_out_parts()

    def graph(self) -> GuessedGraph:
        """Return the config with its comments."""
        nodes: list[NodeTable] = []
        edges: list[EdgeTable] = []
        comments: dict[str, list[str]] = {}
        for one in self.types:
            if one.key is None and len(one.links) == 2:
                for table, comment in self._edge_tables(one):
                    comments[f"edges[{len(edges)}]"] = comment
                    edges.append(table)
                continue
            for node, comment in self._node_tables(one):
                comments[f"nodes[{len(nodes)}]"] = comment
                nodes.append(node)
            for table, comment in self._link_tables(one):
                comments[f"edges[{len(edges)}]"] = comment
                edges.append(table)
        comments[""] = ["Guessed from names and values: correct what is wrong.", *self.notes]
        keys = [
            column for one in self.types for column in (one.key, *(link.column for link in one.links)) if column is not None
        ]
        is_text = any(column.kind == "text" for column in keys) and any(
            table.header is not None for one in self.types for table in one.tables
        )
        config = GraphConfig(tuple(nodes), tuple(edges), id_type="auto" if is_text else None)
        return GuessedGraph(config, comments)

    # ------------------------------------------------------------------------------------------------ tables

    def _without_twins(self, tables: Sequence[SampleTable]) -> list[SampleTable]:
        """Leave out files that hold the same rows as another one: compressed or renamed copies."""
        kept: list[SampleTable] = []
        for table in sorted(tables, key=lambda table: (_COMPRESSED.search(table.path) is not None, table.path)):
            twin = next((other for other in kept if other.columns == table.columns), None)
            if twin is None:
                kept.append(table)
            else:
                self.notes.append(f"left out: {table.path} (the same rows as {twin.path})")
        return sorted(kept, key=lambda table: table.path)

    def _leave_out_parts(self) -> None:
        """Leave out node tables whose rows are all rows of another one."""
        for one in sorted(self.types, key=lambda one: (len(one.key.distinct) if one.key else 0, -len(one.name))):
            for other in self.types:
                if one is other or one.key is None or other.key is None or one.links or len(one.columns) > len(other.columns):
                    continue
                same = one.key.kind == other.key.kind and one.key.distinct <= other.key.distinct
                if same and one.key.name == other.key.name and {c.name for c in one.columns} <= {c.name for c in other.columns}:
                    self.notes.append(f"left out: {one.files} (its IDs are all in {other.files}, and so are its columns)")
                    self.types.remove(one)
                    self._move_links(one, other)
                    break

    def _move_links(self, gone: _Type, to: _Type) -> None:
        for one in self.types:
            one.links = [replace(link, to=to) if link.to is gone else link for link in one.links]

    # ------------------------------------------------------------------------------------------------ links

    def _find_links(self) -> None:
        """Find the columns that hold IDs of other tables; what has two and no key of its own holds edges."""
        for one in self.types:
            ends = _ends(one, self.types)
            if ends is not None:
                one.key, one.links = None, ends
        for one in self.types:  # now that edges are known, no column joins with them
            if one.key is None and len(one.links) == 2:
                one.links = [_link(one, link.column, self._parents(one), is_end=True) for link in one.links]
        for one in self.types:
            if one.key is not None:
                parents = self._parents(one)
                links = (_link(one, column, parents) for column in one.columns if column is not one.key)
                one.links = [link for link in links if link.to is not None]

    def _parents(self, one: _Type) -> list[_Type]:
        return [other for other in self.types if other.key is not None and other is not one] + ([one] if one.key else [])

    # ------------------------------------------------------------------------------------------------ entries

    def _node_tables(self, one: _Type) -> Iterator[tuple[NodeTable, list[str]]]:
        linked = [link.column for link in one.links]
        for number, (config, column) in enumerate(self._configs(one, linked)):
            key = None if one.key is None else column(one.key)
            node = NodeTable(one.name, config, id_col=key, row_ids=one.key is None)
            yield (
                node,
                [f"{one.files}: {one.why}"]
                if number == 0
                else ["The same type: files without a header, or written otherwise."],
            )

    def _edge_tables(self, one: _Type) -> Iterator[tuple[EdgeTable, list[str]]]:
        src, dst = one.links
        ends = [self._end_name(one, link, number) for number, link in enumerate(one.links)]
        relation = _relation_name(one.name, ends[0], ends[1])
        for number, (config, column) in enumerate(self._configs(one, [])):
            table = EdgeTable(ends[0], relation, ends[1], config, src_col=column(src.column), dst_col=column(dst.column))
            comment = [
                f"{one.files}: two columns of IDs and no key of its own: edges.",
                *(f"{link.why}." for link in one.links),
                *([_DANGLING] if any(link.dangles for link in one.links) else []),
            ]
            yield table, comment if number == 0 else ["The same edges: files without a header, or written otherwise."]

    def _link_tables(self, one: _Type) -> Iterator[tuple[EdgeTable, list[str]]]:
        """Yield an edge type for each foreign key of a node table, read from the same files."""
        assert one.key is not None or not one.links
        for link in one.links:
            assert link.to is not None and one.key is not None
            relation = _link_name(link, link.to)
            for config, column in self._configs(one, []):
                only = replace(config, kept=(), dropped=())
                table = EdgeTable(one.name, relation, link.to.name, only, src_col=column(one.key), dst_col=column(link.column))
                yield table, [f"{link.why}: an edge for each row of {one.files}.", *([_DANGLING] if link.dangles else [])]

    def _end_name(self, one: _Type, link: _Link, number: int) -> str:
        if link.to is not None:
            return link.to.name
        if one.named and link.column.name.lower() not in (*_SRC_NAMES, *_DST_NAMES):
            return _ID_ENDING.sub("", link.column.name) or link.column.name
        if all(other.to is None for other in one.links):
            return "node"
        return f"{one.name}_{('src', 'dst')[number]}"

    def _configs(self, one: _Type, dropped: Sequence[SampleColumn]) -> Iterator[tuple[TableConfig, _Naming]]:
        """Yield a config for the files with a header, or typed ones, and one for the files without."""
        groups: dict[tuple[bool, Dialect], list[SampleTable]] = {}
        for table in sorted(one.tables, key=lambda table: table.header is False):
            groups.setdefault((table.header is False, table.dialect), []).append(table)
        for (is_bare, dialect), tables in groups.items():
            naming = _Naming(one, by_name=one.named)
            header: Literal["auto", "yes", "no"] = "auto" if tables[0].header is None else "no" if is_bare else "yes"
            names = tuple(column.name for column in one.columns) if is_bare and one.named else None
            config = TableConfig(
                files=tuple(self._path(table.path) for table in tables),
                header=header,
                names=names,
                escape=dialect.escape,
                comment=dialect.comment,
                dropped=tuple(naming(column) for column in dropped),
            )
            yield config, naming

    def _path(self, path: str) -> str:
        return path if self.url in ("", ".", "./") else f"{self.url.rstrip('/')}/{path}"


@dataclass(frozen=True)
class _Naming:
    """Writes a column as a config names it: by its name, or by its position where files have no header."""

    one: _Type
    by_name: bool

    def __call__(self, column: SampleColumn) -> str:
        return column.name if self.by_name else str(self.one.at(column))


# ---------------------------------------------------------------------------------------------------- types


def _header_note(table: SampleTable) -> str:
    """Say how a first line is read that may be read otherwise."""
    line = f"{table.path}: its first line ({', '.join(table.first_line)})"
    if table.header:
        return f"{line} is read as a header: a guess, header: no makes a row of it"
    return f"{line} is read as a row: a guess, header: yes makes a header of it"


def _merged(tables: Sequence[SampleTable]) -> list[_Type]:
    """Put tables together that are called alike but for a number at the end, and have the same columns."""
    groups: list[list[SampleTable]] = []
    for table in tables:
        base = part_name(table.stem)
        for group in groups:
            if base and part_name(group[0].stem) == base and _fits(group, table):
                group.append(table)
                break
        else:
            groups.append([table])
    return [_type(group) for group in groups]


def _fits(group: Sequence[SampleTable], table: SampleTable) -> bool:
    """Return whether a table has the columns of others."""
    first = group[0]
    if len(first.columns) != len(table.columns) or (first.header is None) != (table.header is None):
        return False
    names = [tuple(c.name for c in one.columns) for one in (*group, table) if one.header is not False]
    kinds = [{one.columns[i].kind for one in (first, table)} for i in range(min(2, len(first.columns)))]
    return len(set(names)) <= 1 and all(len(kind) == 1 for kind in kinds)


def _type(group: list[SampleTable]) -> _Type:
    headed = next((table for table in group if table.header is not False), None)
    columns = []
    for i, column in enumerate((headed or group[0]).columns):
        kinds = {table.columns[i].kind for table in group}
        values = tuple(value for table in group for value in table.columns[i].values)
        columns.append(SampleColumn(column.name, "text" if len(kinds) > 1 else column.kind, values))
    name = group[0].stem if len(group) == 1 else part_name(group[0].stem)
    return _Type(name, group, tuple(columns), headed is not None)


def _find_key(one: _Type) -> tuple[SampleColumn | None, str]:
    """Return the column of IDs and what speaks for it: a name that says so, or the first place; and no value twice."""
    rows = f"{max((len(column.values) for column in one.columns), default=0):,} rows"
    part = "" if one.is_whole else " looked at"
    unique = [column for column in one.columns if column.kind != "other" and column.is_unique]
    wanted = {"id", "key", "uid", "uuid", *(f"{name}{end}" for name in _forms(one.name) for end in ("id", "key", "")), "nodeid"}
    for column in one.columns if one.named else ():
        if _plain(column.name) in wanted and len(column.distinct) >= _LEAST_DISTINCT * len(column.values) > 0:
            differ = "all values differ" if column.is_unique else _repeated(column)
            return column, f"nodes; column {column.name!r} is called like an ID, and {differ} ({rows}{part})."
    if unique and unique[0] is one.columns[0]:
        name = f"column {unique[0].name!r}" if one.named else "the first column"
        return unique[0], f"nodes; {name} is the key: all values differ ({rows}{part})."
    return None, "nodes without a key: their IDs are the numbers of their rows."


def _repeated(column: SampleColumn) -> str:
    """Say how many values of a column differ that is taken for a key, although some stand twice or are missing."""
    counts = Counter(column.values)
    first = next(value for value in column.values if value is None or counts[value] > 1)
    found = "an empty cell" if first is None else f"{first[:_SHOWN]!r} {counts[first]} times"
    return f"{len(column.distinct):,} of {len(column.values):,} values differ; there is {found}, at which convert stops"


def _ends(one: _Type, types: Sequence[_Type]) -> list[_Link] | None:
    """Return the links of source and destination where a table holds edges, else None."""
    others = [other for other in types if other is not one and other.key is not None]
    return _named_ends(one, others) if one.named else _bare_ends(one, others)


def _named_ends(one: _Type, others: Sequence[_Type]) -> list[_Link] | None:
    """Find ends by the columns' names; else by two foreign keys, or one beside another column of IDs, and no other key."""
    src = next((column for column in one.columns if column.name.lower() in _SRC_NAMES), None)
    dst = next((column for column in one.columns if column.name.lower() in _DST_NAMES), None)
    if src is not None and dst is not None:
        return [_link(one, column, others, is_end=True) for column in (src, dst)]
    links = [link for column in one.columns if (link := _link(one, column, others)).to is not None]
    if one.key is not None and all(link.column is not one.key for link in links):
        return None
    first = one.columns[:2]
    if len(links) == 1 and one.key is None and links[0].column in first and len(first) == 2:
        is_pair = all(column.kind != "other" for column in first)
        return [_link(one, column, others, is_end=True) for column in first] if is_pair else None
    return links[:2] if len(links) > 1 else None


def _bare_ends(one: _Type, others: Sequence[_Type]) -> list[_Link] | None:
    """Find ends in the first two columns: both hold IDs of tables, or the first does and both are numbers."""
    first = one.columns[:2]
    if len(first) < 2 or any(column.kind == "other" for column in first):
        return None
    links = [_link(one, column, others, is_end=True) for column in first]
    if all(link.to is not None for link in links):
        return links
    return links if links[0].to is not None and all(column.kind == "int" for column in first) else None


def _link(one: _Type, column: SampleColumn, parents: Sequence[_Type], *, is_end: bool = False) -> _Link:
    """Find the type whose IDs a column holds: by its values, and unless it is an end of edges by its name."""
    named = f"column {column.name!r}" if one.named else f"column {one.at(column)}"
    found: list[tuple[tuple[bool, int, int, int], _Type]] = []
    near = (0, "")
    for parent in parents:
        key = parent.key
        if key is None or "other" in (key.kind, column.kind) or not column.distinct or (parent is one and column is key):
            continue
        is_called = one.named and _is_called(column.name, parent)
        shared = len(column.distinct & key.distinct)
        share = shared / len(column.distinct)
        is_alike = key.kind == column.kind
        likely = is_called or is_end or (is_alike and column.kind == "text" and len(column.distinct) > 1)
        enough = share >= (_LEAST_CALLED if is_called else _LEAST_MATCHED)
        if not parent.is_whole:
            enough = enough or share >= _LEAST_SHARED or is_called
        if likely and enough and (is_alike or shared):
            found.append(((is_called, shared, len(key.distinct), -len(parent.name)), parent))
        elif likely and (is_called or share >= _LEAST_CALLED):
            near = max(near, (shared, parent.name))
    if not found:
        rest = f" ({near[1]} has {near[0]:,} of {len(column.distinct):,})" if near[0] else ""
        return _Link(column, None, f"{named}: no table has these IDs{rest}, they make a type of their own")
    (is_called, shared, *_), to = max(found, key=lambda item: item[0])
    evidence, others = _evidence(one, column, to, shared), _others(column, to, shared)
    if others:
        return _Link(column, to, f"{named}{' is called so, and' if is_called else ':'} {evidence}; {others}", dangles=True)
    return _Link(column, to, f"{named}: {evidence}" + (", and it is called so" if is_called else ""))


def _evidence(one: _Type, column: SampleColumn, to: _Type, shared: int) -> str:
    """Say how many of a column's values are IDs of a type."""
    assert to.key is not None
    count = len(column.distinct)
    where = "" if one.is_whole else f" in the first {len(column.values):,} rows"
    if shared == count:
        return (f"all {count:,} values{where} are" if count > 1 else f"its value{where} is") + f" IDs of {to.name}"
    if not to.is_whole:
        return f"{shared:,} of {count:,} values{where} are among the first {len(to.key.distinct):,} IDs of {to.name}"
    return f"{shared:,} of {count:,} values{where} are IDs of {to.name}"


def _others(column: SampleColumn, to: _Type, shared: int) -> str:
    """Say which values are no IDs of a type that is known as a whole; "" where all are."""
    assert to.key is not None
    number = len(column.distinct) - shared
    if not number or not to.is_whole:
        return ""
    first = next(value for value in column.values if value is not None and value not in to.key.distinct)
    return f"1 is not ({first[:_SHOWN]!r})" if number == 1 else f"{number:,} are not (the first is {first[:_SHOWN]!r})"


# ---------------------------------------------------------------------------------------------------- names


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _forms(name: str) -> tuple[str, ...]:
    """Return a type's name and its singular, plain."""
    plain = _plain(name)
    forms = [plain]
    if plain.endswith("ies"):
        forms.append(plain[:-3] + "y")
    if plain.endswith("s"):
        forms.append(plain[:-1])
    return tuple(form for form in forms if form)


def _is_called(name: str, parent: _Type) -> bool:
    """Return whether a column is called like another table's ID: ``user_id``, ``LocationCityId``, ``Person1Id``, ``user``."""
    words = [word.lower() for word in _WORD.findall(name)]
    key = "id" if parent.key is None else _plain(parent.key.name)
    wanted = {f"{form}{end}" for form in _forms(parent.name) for end in ("", "id", "key", key)}
    return any("".join(words[start:]) in wanted for start in range(len(words)))


def _link_name(link: _Link, to: _Type) -> str:
    """Name the relation of a foreign key: ``LocationCityId`` is ``Location``; ``city_id`` is ``city``."""
    assert to.key is not None
    ends = [f"{form}{end}" for form in _forms(to.name) for end in ("id", "key", _plain(to.key.name), "")]
    for end in ends:
        if end and _plain(link.column.name).endswith(end) and len(end) < len(_plain(link.column.name)):
            letters, name = len(_plain(link.column.name)) - len(end), ""
            for char in link.column.name:
                if letters == 0:
                    break
                name += char
                letters -= bool(_plain(char))
            return name.strip("_- .") or to.name
    return _ID_ENDING.sub("", link.column.name) or to.name


def _relation_name(name: str, src: str, dst: str) -> str:
    """Name the relation of an edge table: ``person_knows_person`` is ``knows`` between persons."""
    low = name.lower()
    for one in (*_forms(src), src.lower()):
        for other in (*_forms(dst), dst.lower()):
            found = re.fullmatch(rf"{re.escape(one)}s?[-_](.+?)[-_]{re.escape(other)}s?", low)
            if found:
                return name[found.start(1) : found.end(1)]
    return name


__all__ = ["GuessedGraph", "guess_graph"]
