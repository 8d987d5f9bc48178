"""What a split is to be, read and held against the store: by what, of which types, with which shares or borders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from graphprep.convert.columns.roles import decoded_name
from graphprep.model.errors import UsageError, one_of
from graphprep.model.metadata import GraphMetadata
from graphprep.model.options.negatives import NegativeRule, negative_rule
from graphprep.model.options.split import SplitBy, SplitOptions, parse_by
from graphprep.model.schema import NEGATIVE_ROLES, ColumnSchema, edge_type_text
from graphprep.rewrite.split.keys import find_label, find_time, type_words
from graphprep.rewrite.split.negatives import check_rule
from graphprep.rewrite.split.shares import TEST, TRAIN, VALID, Shares, parse_shares
from graphprep.rewrite.transform.select import Owner, all_owners, any_owner, edge_owner
from graphprep.store.paths import has_edge_rows

COLUMN = "split"
_AT_FIX = "write one or two borders, oldest first, such as 2018-01-01/2019-01-01"


@dataclass(frozen=True)
class SplitRules:
    """A split: of ``owners`` by their ``columns`` (None where hashes are the keys), into ``shares``, or else at borders ``at``.

    ``reverses`` are owners with the edge types that have their edges the other way round (at random these are no owners);
    ``symmetric`` are numbers of edge types that have edges in both directions, which stay together; ``followers`` edge types
    whose parts follow from those of nodes. ``notes`` are sentences for the user.
    """

    by: SplitBy
    shares: Shares | None
    at: tuple[str, ...]
    owners: tuple[Owner, ...]
    columns: tuple[ColumnSchema | None, ...]
    reverses: tuple[tuple[Owner, Owner], ...]
    followers: tuple[Owner, ...]
    symmetric: frozenset[int]
    seed: int
    notes: tuple[str, ...]
    negatives: NegativeRule | None = None

    @property
    def targets(self) -> tuple[Owner, ...]:
        """Return all types that get a split."""
        return tuple(dict.fromkeys((*self.owners, *(second for _, second in self.reverses), *self.followers)))

    def column_like(self, first: Owner, second: Owner) -> ColumnSchema | None:
        """Return the column of ``second`` that is alike to the one by which ``first`` is split; None: there is none."""
        wanted = self.columns[self.owners.index(first)]
        alike = (one for one in second.columns if wanted is not None and one.name == wanted.name)
        return next((one for one in alike if wanted is not None and replace(wanted, optional=one.optional) == one), None)

    @property
    def parts(self) -> tuple[int, ...]:
        """Return the numbers of the parts, ascending."""
        if self.shares is not None:
            return self.shares.parts
        return (TRAIN, VALID, TEST) if len(self.at) > 1 else (TRAIN, TEST)


def read_rules(metadata: GraphMetadata, shares: str, options: SplitOptions) -> SplitRules:
    """Read what is asked for. Raises UsageError where it means nothing, or nothing for this store."""
    by, name = parse_by(options.by)
    negatives = negative_rule(options.negatives, options.negatives_by, options.corrupt)
    if by == "keep":
        return _kept(metadata, shares, options, negatives)
    at = _read_at(options.at, by, shares)
    read = None if at else parse_shares(shares)
    chosen = _choose(metadata, options.of, by)
    reverses = _read_reverses(metadata, options, by, chosen)
    taken = [second for _, second in reverses]
    found: list[tuple[Owner, ColumnSchema | None]] = [(owner, None) for owner in chosen if owner not in taken]
    notes: list[str] = []
    if by in ("time", "label"):
        found = _find_columns(chosen, by, name)
        there = [owner for owner, _ in found]
        left = [owner for owner in chosen if owner not in there]
        if left and (options.of or not found):
            raise _no_column(by, name, left)
        notes = [f"{type_words(owner)} has no {name or by}: it gets no split" for owner in left]
    followers = _edge_types_at(metadata, chosen) if by == "nodes" else ()
    owners, columns = (tuple(one) for one in zip(*found, strict=True))
    ends = enumerate(metadata.edge_types)
    symmetric = frozenset(number for number, (src, _, dst) in ends if src == dst) if options.symmetric else frozenset()
    rules = SplitRules(by, read, at, owners, columns, reverses, followers, symmetric, options.seed, tuple(notes), negatives)
    check_targets(metadata, rules, overwrite=options.overwrite_column)
    return rules


def check_targets(metadata: GraphMetadata, rules: SplitRules, *, overwrite: bool) -> None:
    """Raise UsageError where a type cannot get the split, or negatives."""
    _check_columns(rules, overwrite=overwrite)
    _check_negatives(metadata, rules)
    _check_edge_rows(metadata, rules.targets)


def _kept(metadata: GraphMetadata, shares: str, options: SplitOptions, negatives: NegativeRule | None) -> SplitRules:
    """Read what is asked for of edges that have a split, which stays."""
    given = {"SHARES": shares, "--at": options.at, "--symmetric": options.symmetric, "--reverse-types": options.reverse_types}
    for flag, value in given.items():
        if value:
            raise UsageError(f"{flag} does nothing with --by keep: splits stay as they are", fix="leave it out")
    if negatives is None:
        raise UsageError("--by keep does nothing without --negatives", fix="give --negatives, or split by something")
    chosen = [owner for owner in _choose(metadata, options.of or ("edges",), "keep") if not owner.is_node]
    owners = tuple(owner for owner in chosen if any(column.role == "split" for column in owner.columns))
    left = [owner for owner in chosen if owner not in owners]
    if not owners or (left and set(options.of) - {"edges"}):
        words = f"{type_words(left[0])} has no split" if owners else "no edge type has a split"
        raise UsageError(words, place="--by keep", fix="split it by something, such as random")
    rules = SplitRules("keep", None, (), owners, (), (), (), frozenset(), options.seed, (), negatives)
    for owner in owners:
        for column in owner.columns:
            if column.role in NEGATIVE_ROLES and not options.overwrite_column:
                raise UsageError(f"{type_words(owner)} has negatives already", fix="give --overwrite-column to replace them")
    _check_negatives(metadata, rules)
    return rules


def _check_negatives(metadata: GraphMetadata, rules: SplitRules) -> None:
    """Raise UsageError where negatives are asked for that cannot be."""
    edges = [owner for owner in rules.targets if not owner.is_node]
    if rules.negatives is None:
        return
    if not edges:
        raise UsageError("--negatives are those of edges, and nodes are split", fix="give --of edges, or leave them out")
    for owner in edges:
        check_rule(rules.negatives, metadata.edge_types[owner.number])
        for column in owner.columns:
            if column.name in NEGATIVE_ROLES and column.role is None:
                words = f"{type_words(owner)} has a column {column.name!r}, the name of its negatives"
                raise UsageError(words, fix=f"drop it first: graphprep transform STORE OUT drop-columns {column.name}")


def _find_columns(chosen: Sequence[Owner], by: SplitBy, name: str | None) -> list[tuple[Owner, ColumnSchema | None]]:
    """Return the types that have a column of times or labels, with it."""
    find = find_time if by == "time" else find_label
    having = [owner for owner in chosen if name is None or _has(owner, name)]
    found = [(owner, column) for owner in having if (column := find(owner, name)) is not None]
    if by == "time":
        _check_comparable(found)
    return [*found]


def _edge_types_at(metadata: GraphMetadata, chosen: Sequence[Owner]) -> tuple[Owner, ...]:
    """Return the edge types at which a chosen node type stands."""
    names = {owner.name for owner in chosen}
    return tuple(edge_owner(metadata, edge_type_text(one)) for one in metadata.edge_types if names & {one[0], one[2]})


def _has(owner: Owner, name: str | None) -> bool:
    return any(column.name == name for column in owner.columns)


def _read_at(at: str | None, by: SplitBy, shares: str) -> tuple[str, ...]:
    if at is None:
        if not shares:
            fix = "write TRAIN/VALID/TEST, such as 0.8/0.1/0.1" + (", or --at with borders" if by == "time" else "")
            raise UsageError("SHARES are needed: how many rows go where", fix=fix)
        return ()
    if by != "time":
        raise UsageError(f"--at does nothing with --by {by}", fix="leave it out, or give --by time")
    if shares:
        raise UsageError(f"--at gives the borders: there is nothing left for the shares {shares!r}", fix="give one of them")
    borders = tuple(at.split("/"))
    if len(borders) > 2 or not all(borders):
        raise UsageError(f"{at!r} are no borders", place="--at", fix=_AT_FIX)
    return borders


def _choose(metadata: GraphMetadata, of: Sequence[str], by: SplitBy) -> list[Owner]:
    """Return the types that are named."""
    every, chosen = all_owners(metadata), list[Owner]()
    for name in of or (("edges",) if by == "time" else ("nodes",)):
        if name in ("nodes", "edges"):
            chosen += [one for one in every if one.is_node == (name == "nodes")]
            continue
        known = [one.name for one in every] + [relation for _, relation, _ in metadata.edge_types]
        if not {name, decoded_name(name)} & {*known}:
            fix = one_of(["nodes", "edges", *(one.name for one in every)], found=name)
            raise UsageError(f"there is no type {name!r}", place="--of", fix=fix)
        chosen.append(any_owner(metadata, name))
    chosen = list(dict.fromkeys(chosen))
    wrong = [owner for owner in chosen if by == "nodes" and not owner.is_node]
    if wrong:
        words = f"--by nodes holds out nodes, and {wrong[0].name!r} is an edge type"
        raise UsageError(words, place="--of", fix="name node types; edges follow")
    if not chosen:
        raise UsageError("there is nothing to split", place="--of", fix="name a type that is there")
    return chosen


def _read_reverses(
    metadata: GraphMetadata, options: SplitOptions, by: SplitBy, chosen: Sequence[Owner]
) -> tuple[tuple[Owner, Owner], ...]:
    """Read pairs of an edge type and its reverse."""
    why = {
        "time": "edges of one time are in one part",
        "nodes": "the parts of an edge's ends say its own",
        "label": "the labels of both directions may differ",
    }
    for flag, given in (("--symmetric", options.symmetric), ("--reverse-types", options.reverse_types)):
        if given and by in why:
            raise UsageError(f"{flag} does nothing with --by {by}: {why[by]}", fix="leave it out")
        if given and all(owner.is_node for owner in chosen):
            raise UsageError(f"{flag} is for edges, and nodes are split", fix="give --of edges")
    ends = [metadata.edge_types[owner.number] for owner in chosen if not owner.is_node]
    if options.symmetric and all(src != dst for src, _, dst in ends):
        raise UsageError(
            "--symmetric: no edge type leads from a node type to itself",
            fix="name reverse types: --reverse-types A:REL:B=B:REV:A",
        )
    pairs: list[tuple[Owner, Owner]] = []
    for text in options.reverse_types:
        pairs.append(_read_pair(metadata, text))
        if pairs[-1][0] not in chosen:
            raise UsageError(f"{pairs[-1][0].name!r} is not split", place=f"--reverse-types {text}", fix="name it by --of")
        names = [owner.name for pair in pairs for owner in pair]
        for name in set(names[-2:]):
            if names.count(name) > 1:
                fix = "name each type once; for a type that is its own reverse give --symmetric"
                raise UsageError(f"{name!r} is named twice", place=f"--reverse-types {text}", fix=fix)
    return tuple(pairs)


def _read_pair(metadata: GraphMetadata, text: str) -> tuple[Owner, Owner]:
    first, equals, second = text.partition("=")
    place = f"--reverse-types {text}"
    if not equals:
        raise UsageError("this names no two edge types", place=place, fix="write SRC:REL:DST=DST:REV:SRC")
    pair = edge_owner(metadata, first), edge_owner(metadata, second)
    (src, _, dst), (back_src, _, back_dst) = (metadata.edge_types[owner.number] for owner in pair)
    if (src, dst) != (back_dst, back_src):
        raise UsageError(f"{pair[1].name!r} does not lead back", place=place, fix=f"name one from {dst!r} to {src!r}")
    return pair


def _no_column(by: SplitBy, name: str | None, owners: Sequence[Owner]) -> UsageError:
    names = ", ".join(repr(owner.name) for owner in owners)
    who = f"{type_words(owners[0])} has no" if len(owners) == 1 else f"none of {names} has a"
    if name is not None:
        fix = "name another column, or other types by --of"
        return UsageError(f"{who} column {name!r}", place=f"--by {by}:{name}", fix=fix)
    fix = f"name a column: --by {by}:COL; or other types by --of"
    return UsageError(f"{who} {by}", place=f"--by {by}", fix=fix)


def _check_comparable(found: Sequence[tuple[Owner, ColumnSchema]]) -> None:
    """Raise UsageError where times of types mean different things."""
    kinds: dict[tuple[str, str | None], str] = {}
    for owner, column in found:
        kind = "float" if column.dtype.startswith("float") else "uint64" if column.dtype == "uint64" else "integer"
        kinds.setdefault((kind, column.unit), f"{owner.name!r} ({column.name!r}: {column.unit or kind})")
    if len(kinds) > 1:
        raise UsageError(
            f"the times of {' and '.join(list(kinds.values())[:2])} cannot be compared",
            place="--by time",
            fix="split one type after another: --of TYPE",
        )


def _check_columns(rules: SplitRules, *, overwrite: bool) -> None:
    """Raise UsageError where a type has a split, or a column of its name, unless it is to be replaced."""
    for owner in rules.targets:
        for column in owner.columns:
            if not overwrite and is_replaced(column):
                what = "a split" if column.role == "split" else "a column"
                words = f"{type_words(owner)} has {what} already, {column.name!r}"
                is_reverse = owner in {second for _, second in rules.reverses}
                fix = "give --overwrite-column to replace it" + (", or --reverses apart" if is_reverse else "")
                raise UsageError(words, fix=fix)


def is_replaced(column: ColumnSchema) -> bool:
    """Return whether a column gives way to a new split: also negatives, which are those of the old one."""
    return column.role in ("split", *NEGATIVE_ROLES) or column.name == COLUMN


def _check_edge_rows(metadata: GraphMetadata, owners: Sequence[Owner]) -> None:
    """Raise UsageError where a second layout could not name the rows of a type's first column."""
    for owner in owners if len(metadata.layouts) > 1 else ():
        schema = None if owner.is_node else metadata.edge_schemas[owner.number]
        if schema is not None and schema.edge_id_dtype is None and not has_edge_rows(schema):
            raise UsageError(
                f"{type_words(owner)} has two layouts, and no edge IDs by which both could have a column",
                fix=f"make a store of one layout first: graphprep transform STORE OUT layout {metadata.primary_layout}",
            )
