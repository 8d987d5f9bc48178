"""Which columns are labels, splits and seeds: ``--label``, ``--split`` and ``--seeds``, read and matched with the types."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.cpu.ids.hash import hash_ints, splitmix64
from graphprep.model.errors import UsageError, one_of
from graphprep.model.graph_config import GraphConfig
from graphprep.model.protocols import Sources
from graphprep.model.schema import EdgeType, edge_type_text, escape_name

Owner = str | EdgeType
RoleName = Literal["label", "split", "seeds", "category"]

PART_NAMES = ("train", "valid", "test")
NO_PART = 3
_SALT = 0x1FE6A04E179FD32E  # h("split"), so that parts have nothing to do with --partition-by hash
NEAR_ONE = Fraction(1, 10**6)  # fractions that miss 1 by no more than that are meant to add up to it
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)")
_ENCODED = {"%3A": ":", "%2C": ",", "%3D": "=", "%25": "%"}
_COLUMN_FIX = {
    "category": "write TYPE:COL for nodes, SRC:REL:DST:COL for edges",
    "label": "write TYPE:COL for nodes, SRC:REL:DST:COL for edges",
    "split": "write TYPE:COL, TYPE:MASK,MASK,MASK, TYPE:0.8/0.1/0.1 or TYPE=FILE,FILE,FILE; SRC:REL:DST is a TYPE, too",
    "seeds": "write FILE or TYPE=FILE",
}


class SplitRule(NamedTuple):
    """A random split. ``bounds`` are the cumulative fractions times 2^64, rounded down; ``key`` is mixed into every hash."""

    key: int
    bounds: tuple[int, int, int]

    def parts(self, hashes: NDArray[np.uint64]) -> NDArray[np.int8]:
        """Return the part of each h: int8[k] of 0 (train), 1 (valid), 2 (test) and 3 (none)."""
        mixed = hash_ints(hashes ^ np.uint64(self.key))
        part = np.zeros(mixed.size, np.int8)
        for bound in self.bounds:
            if bound < 2**64:
                part += mixed >= np.uint64(bound)
        return part


def split_rule(fractions: Sequence[Fraction], seed: int) -> SplitRule:
    """Make the rule of a random split into train, valid and test; docs/labels.md states it.

    Raises ValueError where a fraction lies outside [0, 1], all are 0, or they add up to more than 1.
    """
    if any(not 0 <= fraction <= 1 for fraction in fractions):
        raise ValueError("a fraction lies outside 0..1")
    total = sum(fractions, Fraction(0))
    if total > 1 + NEAR_ONE or not total:
        raise ValueError(f"the fractions add up to {float(total):g}")
    ends = [sum(fractions[: i + 1], Fraction(0)) for i in range(3)]
    if abs(total - 1) <= NEAR_ONE:
        ends[2] = Fraction(1)
    first, second, third = (int(min(end, Fraction(1)) * 2**64) for end in ends)
    return SplitRule(split_key(seed), (first, second, third))


def split_key(seed: int) -> int:
    """Return what is mixed into every hash of a random split."""
    return int(splitmix64(np.uint64(int(splitmix64(np.uint64(seed % 2**64))) ^ _SALT)))


@dataclass(frozen=True)
class RoleFlag:
    """One flag as it was read.

    ``owner`` None stands for the only node type; ``place`` says where it was given, ``base`` where relative ``files`` begin.
    """

    role: RoleName
    place: str
    owner: Owner | None = None
    columns: tuple[str, ...] = ()
    rule: SplitRule | None = None
    files: tuple[str, ...] = ()
    base: str = ""

    @property
    def fix(self) -> str:
        """Return how such a flag is written."""
        return _COLUMN_FIX[self.role]


@dataclass(frozen=True)
class OwnerRoles:
    """What is asked for of one node or edge type."""

    labels: tuple[RoleFlag, ...] = ()
    split: RoleFlag | None = None
    seeds: tuple[RoleFlag, ...] = ()
    categories: tuple[RoleFlag, ...] = ()

    @property
    def flags(self) -> tuple[RoleFlag, ...]:
        """Return all flags."""
        return (*self.labels, *(() if self.split is None else (self.split,)), *self.seeds, *self.categories)


@dataclass(frozen=True)
class Roles:
    """What is asked for, by node type and edge type."""

    owners: dict[Owner, OwnerRoles] = field(default_factory=dict)

    def of(self, owner: Owner) -> OwnerRoles:
        """Return what is asked for of a type."""
        return self.owners.get(owner, _NOTHING)

    @property
    def edge_types(self) -> tuple[EdgeType, ...]:
        """Return the edge types of which something is asked for."""
        return tuple(owner for owner in self.owners if not isinstance(owner, str))


_NOTHING = OwnerRoles()


def owner_name(owner: Owner) -> str:
    """Return a type's name, ``src:rel:dst`` for edges."""
    return owner if isinstance(owner, str) else edge_type_text(owner)


def owner_words(owner: Owner) -> str:
    """Name a type in a message."""
    return f"{'node' if isinstance(owner, str) else 'edge'} type {owner_name(owner)!r}"


# ------------------------------------------------------------------------------------------------------- reading


def read_flags(
    labels: Sequence[str],
    splits: Sequence[str],
    seeds: Sequence[str],
    seed: int,
    place: str = "",
    base: str = "",
    categories: Sequence[str] = (),
) -> tuple[RoleFlag, ...]:
    """Read the texts of the flags.

    ``place`` is the config in which they stand, empty for the command line, and ``base`` its folder. Raises UsageError for a
    text that is none.
    """
    given: tuple[tuple[RoleName, Sequence[str]], ...] = (
        ("label", labels),
        ("split", splits),
        ("seeds", seeds),
        ("category", categories),
    )
    return tuple(_read(role, text, seed, place, base) for role, texts in given for text in texts)


def _read(role: RoleName, text: str, seed: int, config: str, base: str) -> RoleFlag:
    place = f"{config}: {role} {text}" if config else f"--{role} {text}"
    if role == "seeds":
        return RoleFlag(role, place, files=(text,), base=base)
    if role == "split" and "=" in text:
        return _read_split_files(RoleFlag(role, place, base=base), text)
    pieces = text.split(":")
    if len(pieces) not in (1, 2, 4) or not all(pieces):
        raise UsageError("this names no column", place=place, fix=_COLUMN_FIX[role])
    names = [decoded_name(piece) for piece in pieces[:-1]]
    owner: Owner | None = None
    if len(names) == 3:
        owner = (names[0], names[1], names[2])
    elif names:
        owner = names[0]
    if role in ("label", "category"):
        return RoleFlag(role, place, owner, (decoded_name(pieces[-1]),))
    return _read_split(RoleFlag(role, place, owner), pieces[-1], seed)


def _read_split(flag: RoleFlag, text: str, seed: int) -> RoleFlag:
    numbers = text.split("/")
    if len(numbers) > 1 and all(_NUMBER.fullmatch(number) for number in numbers):
        fix = "write three fractions that add up to at most 1, such as 0.8/0.1/0.1"
        if len(numbers) != 3:
            raise UsageError(f"expected three fractions, found {len(numbers)}", place=flag.place, fix=fix)
        try:
            rule = split_rule([Fraction(number) for number in numbers], seed)
        except ValueError as error:
            raise UsageError(str(error), place=flag.place, fix=fix) from None
        return replace(flag, rule=rule)
    columns = tuple(decoded_name(piece) for piece in text.split(","))
    if len(columns) not in (1, 3) or not any(columns):
        raise UsageError(
            f"expected one column or three masks, found {len(columns)}",
            place=flag.place,
            fix="write train_mask,valid_mask,test_mask; leave a name empty where there is no such mask",
        )
    return replace(flag, columns=columns)


def _read_split_files(flag: RoleFlag, text: str) -> RoleFlag:
    name, _, files = text.partition("=")
    paths = tuple(path.replace("%2C", ",") for path in files.split(","))
    if len(paths) != 3 or not any(paths) or ":" in name:
        raise UsageError(
            "these are no three files of a node type",
            place=flag.place,
            fix="write TYPE=TRAIN_FILE,VALID_FILE,TEST_FILE; leave a path empty where there is no such file",
        )
    return replace(flag, owner=decoded_name(name) or None, files=paths)


def decoded_name(name: str) -> str:
    """Decode what would end a name of a flag; any other percent sign stands for itself."""
    return re.sub("|".join(_ENCODED), lambda found: _ENCODED[found[0]], name)


# ------------------------------------------------------------------------------------------------------ matching


def with_owners(flags: Sequence[RoleFlag], sources: Sources) -> tuple[RoleFlag, ...]:
    """Return the flags, those that name no type with the one that has their column, where the input says so beforehand.

    Raises UsageError where several types have it.
    """
    return tuple(_with_owner(flag, sources) if flag.owner is None and flag.columns else flag for flag in flags)


def _with_owner(flag: RoleFlag, sources: Sources) -> RoleFlag:
    columns = (*((column.owner, column.key.name) for column in sources.columns), *sources.named_columns)
    having = dict.fromkeys(owner for owner, name in columns if name in flag.columns)
    owners: list[Owner] = [owner for owner in having if isinstance(owner, str)]  # of nodes, before those of edges
    owners = owners or list(having)
    if len(sources.node_types) < 2 or not owners:
        return flag
    if len(owners) > 1:
        column = next(filter(None, flag.columns))
        names = [escape_name(owner) if isinstance(owner, str) else edge_type_text(owner) for owner in owners]
        raise UsageError(
            f"several types have a column {column!r}: {_listed(names)}",
            place=flag.place,
            fix=f"name one of them, such as --{flag.role} {names[0]}:{flag.place.partition(f'{flag.role} ')[2]}",
        )
    return replace(flag, owner=owners[0])


def match_types(flags: Sequence[RoleFlag], node_types: Sequence[str]) -> Roles:
    """Find the types that flags speak of.

    Raises UsageError for a node type that is not there, and for a column or a type that is asked for twice. Edge types may
    turn up later: ``check_edge_types``.
    """
    owners: dict[Owner, list[RoleFlag]] = {}
    for flag in flags:
        owner, matched = _match(flag, node_types)
        owners.setdefault(owner, []).append(matched)
    return Roles({owner: _collect(owner, own) for owner, own in owners.items()})


def _match(flag: RoleFlag, node_types: Sequence[str]) -> tuple[Owner, RoleFlag]:
    owner = flag.owner
    if flag.role == "seeds":
        name, equals, file = flag.files[0].partition("=")
        if equals and "/" not in name:  # else a path
            owner, flag = decoded_name(name), replace(flag, files=(file,))
    if owner is None:
        if len(node_types) != 1:
            raise UsageError(
                f"there are {len(node_types)} node types: {_listed(node_types)}", place=flag.place, fix="name one of them"
            )
        return node_types[0], flag
    if isinstance(owner, str) and owner not in node_types:
        raise UsageError(
            f"there is no node type {owner!r}", place=flag.place, fix=f"{one_of(node_types, found=owner)}; or {flag.fix}"
        )
    return owner, flag


def _collect(owner: Owner, flags: Sequence[RoleFlag]) -> OwnerRoles:
    seen: dict[str, RoleFlag] = {}
    for flag in flags:
        for column in filter(None, flag.columns):
            if column in seen:
                raise UsageError(
                    f"column {column!r} of {owner_words(owner)} is asked for twice, also by {seen[column].place}",
                    place=flag.place,
                    fix="give a column one role",
                )
            seen[column] = flag
    splits = [flag for flag in flags if flag.role == "split"]
    if len(splits) > 1:
        raise UsageError(
            f"{owner_words(owner)} has a split already, by {splits[0].place}",
            place=splits[1].place,
            fix="give a type one split",
        )
    labels, seeds, categories = (tuple(flag for flag in flags if flag.role == role) for role in ("label", "seeds", "category"))
    return OwnerRoles(labels, splits[0] if splits else None, seeds, categories)


def category_texts(flags: Sequence[RoleFlag], sources: Sources) -> dict[str, str]:
    """Return the columns that are to be categories, as decoders take them that would else find dtypes in the data.

    That is by ``role/name`` for tables, and by name for edge lists.
    """
    types, found = sources.node_types, dict[str, str]()
    for flag in flags:
        owner = types[0].name if flag.owner is None and len(types) == 1 else flag.owner
        if flag.role == "category" and owner is not None:
            kind, name = "nodes" if isinstance(owner, str) else "edges", flag.columns[0]
            keys = (f"{kind} {owner_name(owner)}/{name}", f"{kind}/{name}") if sources.nodes == "tables" else (name,)
            found |= dict.fromkeys(keys, "binary")
    return found


def check_declared(flags: Sequence[RoleFlag], sources: Sources, graph: GraphConfig | None) -> None:
    """Match flags with types before anything is decoded, where the data cannot name others.

    Raises UsageError as ``match_types`` and ``check_edge_types`` do.
    """
    are_tables = sources.nodes == "tables" and graph is not None and all(node.type is not None for node in graph.nodes)
    if not flags or not (are_tables or sources.nodes in ("ends", "identity")):
        return
    roles = match_types(flags, [node.name for node in sources.node_types])
    relations = sources.edge_types
    edge_types = [(one.src_type, one.name, one.dst_type) for one in relations if one.src_type and one.dst_type]
    are_named = graph is None or all(edge.relation is not None for edge in graph.edges)
    if are_named and len(edge_types) == len(relations):
        check_edge_types(roles, edge_types)


def check_edge_types(roles: Roles, edge_types: Sequence[EdgeType]) -> None:
    """Raise UsageError for an edge type that is not there."""
    for owner in roles.edge_types:
        if owner not in edge_types:
            flag = roles.of(owner).flags[0]
            raise UsageError(
                f"there is no edge type {edge_type_text(owner)!r}",
                place=flag.place,
                fix=one_of(map(edge_type_text, edge_types), found=edge_type_text(owner)),
            )


def _listed(names: Sequence[str], most: int = 12) -> str:
    """List names, the first of them where they are many."""
    more = [f"… ({len(names)} in all)"] if len(names) > most else []
    return ", ".join([*names[:most], *more]) or "(there is none)"


def missing_column(flag: RoleFlag, owner: Owner, column: str, there: Sequence[str], elsewhere: Sequence[str]) -> UsageError:
    """Word that a type has no such column: ``there`` are its columns, ``elsewhere`` how the flag would name other types'."""
    fix = one_of(there, found=column) if there else "choose a type that has columns"
    if elsewhere:
        fix = f"write {' or '.join(elsewhere[:3])}"
    return UsageError(f"{owner_words(owner)} has no column {column!r}", place=flag.place, fix=fix)


__all__ = [
    "NEAR_ONE",
    "NO_PART",
    "PART_NAMES",
    "Owner",
    "OwnerRoles",
    "RoleFlag",
    "Roles",
    "SplitRule",
    "category_texts",
    "check_declared",
    "check_edge_types",
    "match_types",
    "missing_column",
    "owner_name",
    "owner_words",
    "read_flags",
    "split_key",
    "split_rule",
    "with_owners",
]
