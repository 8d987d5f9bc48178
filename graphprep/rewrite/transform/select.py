"""Which nodes or edges are meant: a list of IDs in a file, a mask column, the part of a split, or an expression."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.convert.columns.roles import decoded_name
from graphprep.model.errors import DataError, UsageError, one_of
from graphprep.model.metadata import GraphMetadata
from graphprep.model.schema import ColumnSchema, EdgeType, edge_type_text
from graphprep.model.syntax import PARSER
from graphprep.rewrite.transform import numbers
from graphprep.rewrite.transform.recipe import slices
from graphprep.rewrite.transform.write import column_values
from graphprep.storage.spill.scratch import Scratch
from graphprep.store.items import StoredArrays
from graphprep.store.paths import edge_folder, node_folder
from graphprep.store.single import WholeStore

Mask = NDArray[np.bool_]
_MOST_SHOWN = 100  # characters of an expression in a message
_BACKTICK = "_backtick_"
_HIDDEN = re.compile(f"{_BACKTICK}((?:[0-9a-f]{{2}})+)")
_QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`([^`]+)`""")  # texts, in which backticks are as they are
SPLITS = {"train": 0, "valid": 1, "test": 2}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
}


@dataclass(frozen=True)
class Owner:
    """A node type or an edge type: its number, its rows, its columns and their folder."""

    is_node: bool
    number: int
    name: str
    size: int
    columns: tuple[ColumnSchema, ...]
    folder: str

    def column(self, name: str) -> ColumnSchema:
        """Return a column of single numbers. Raises UsageError."""
        column = self.any_column(name)
        if column.kind != "dense" or column.item_shape:
            raise UsageError(f"column {name!r} of {self.name!r} has no single number a row", fix="name another column")
        return column

    def any_column(self, name: str) -> ColumnSchema:
        """Return a column. Raises UsageError."""
        for column in self.columns:
            if column.name == name:
                return column
        raise UsageError(f"{self.name!r} has no column {name!r}", fix=one_of((one.name for one in self.columns), found=name))


def node_owner(metadata: GraphMetadata, name: str | None) -> Owner:
    """Return a node type by name, None: the only one. Raises UsageError."""
    if name is None and len(metadata.node_types) == 1:
        name = metadata.node_types[0]
    if name is not None and name not in metadata.node_types:
        name = decoded_name(name)
    if name is None or name not in metadata.node_types:
        words = "there are several node types" if name is None else f"there is no node type {name!r}"
        raise UsageError(words, fix=one_of(metadata.node_types, "name one of", found=name or ""))
    number = metadata.node_types.index(name)
    columns = metadata.node_schemas[number].columns
    return Owner(True, number, name, metadata.num_nodes_per_type[number], columns, node_folder(name))


def edge_owner(metadata: GraphMetadata, name: str | None) -> Owner:
    """Return an edge type by ``src:rel:dst`` or by its relation, None: the only one. Raises UsageError."""
    names = list(map(edge_type_text, metadata.edge_types))
    found = [
        number
        for number, (text, (_, relation, _)) in enumerate(zip(names, metadata.edge_types, strict=True))
        if name in (None, text, relation)
    ]
    if len(found) != 1:
        words = f"there is no edge type {name!r}" if not found else "there are several edge types"
        raise UsageError(words, fix=one_of(names, "name one of", found="" if found else name or ""))
    edge_type: EdgeType = metadata.edge_types[found[0]]
    size, columns = metadata.num_edges_per_type[found[0]], metadata.edge_schemas[found[0]].columns
    return Owner(False, found[0], names[found[0]], size, columns, edge_folder(edge_type))


def any_owner(metadata: GraphMetadata, name: str) -> Owner:
    """Return a node type, or else an edge type, by name. Raises UsageError."""
    is_node = {name, decoded_name(name)} & {*metadata.node_types}
    return node_owner(metadata, name) if is_node else edge_owner(metadata, name)


def all_owners(metadata: GraphMetadata) -> list[Owner]:
    """Return all node types and edge types."""
    nodes = [node_owner(metadata, name) for name in metadata.node_types]
    return nodes + [edge_owner(metadata, edge_type_text(edge_type)) for edge_type in metadata.edge_types]


def expression_owner(metadata: GraphMetadata, words: str) -> tuple[Owner, str]:
    """Split ``TYPE: EXPRESSION``; without a type, the only one that has all columns that are named. Raises UsageError."""
    at = _QUOTED.sub(lambda found: "_" * len(found[0]), words).rfind(": ")
    text = words[at + 2 :] if at >= 0 else words
    if at >= 0:
        return any_owner(metadata, words[:at]), text
    names = set(_columns(_parse(text)).values())
    owners = [one for one in all_owners(metadata) if names <= {column.name for column in one.columns}]
    if len(owners) != 1:
        said = "no type has" if not owners else "several types have"
        fix = one_of([one.name for one in owners or all_owners(metadata)], "write 'TYPE: EXPRESSION'; TYPE is one of")
        raise UsageError(f"{said} the columns of {_shown(text)}", fix=fix)
    return owners[0], text


def _no_expression(text: str) -> UsageError:
    return UsageError(f"{_shown(text)} is no expression", fix="write for instance: age > 30 and country == 2")


def _parse(text: str) -> ast.expr:
    """Parse an expression; what stands in backticks is the name of a column, in digits behind ``_BACKTICK`` for Python."""
    plain = _QUOTED.sub(lambda found: found[0] if found[1] is None else _hidden(found[1]), text.strip())
    try:
        with PARSER:
            return ast.parse(plain, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last two: nested too deep
        raise _no_expression(text) from None


def _hidden(name: str) -> str:
    return _BACKTICK + name.encode(errors="surrogatepass").hex()


def _name(hidden: re.Match[str]) -> str:
    return bytes.fromhex(hidden[1]).decode(errors="surrogatepass")


def _columns(tree: ast.expr) -> dict[str, str]:
    """Return the names of columns by what stands for them in a parsed expression."""
    words = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    hidden = {word: _HIDDEN.fullmatch(word) for word in words}
    return {word: word if found is None else _name(found) for word, found in hidden.items()}


def _shown(text: str) -> str:
    """Quote an expression, cut where it is long."""
    return repr(text if len(text) <= _MOST_SHOWN else text[: _MOST_SHOWN - 1] + "…")


def column_mask(store: StoredArrays, owner: Owner, name: str, value: str | None, scratch: Scratch) -> Mask:
    """Return which rows of a type have a value in a column that is not 0, or that is ``value``: bool[n].

    ``value`` is a number, a category's name, or a split's part. Raises UsageError.
    """
    column = owner.column(name)
    wanted = None if value is None else _parse_value(column, value)
    values, present = column_values(WholeStore(store), owner.folder, column, scratch)
    out: Mask = scratch.zeros(owner.size, np.bool_)
    for at in slices(owner.size):
        out[at] = (values[at] != 0) if wanted is None else numbers.compared(operator.eq, values[at], wanted)
        if present is not None:
            out[at] &= present[at]
    return out


def _parse_value(column: ColumnSchema, value: str) -> float:
    if column.categories and value in column.categories:
        return column.categories.index(value)
    if column.role == "split" and value in SPLITS:
        return SPLITS[value]
    try:
        return int(value) if value.lstrip("-").isdigit() else float(value)
    except ValueError:
        known = column.categories or (tuple(SPLITS) if column.role == "split" else ())
        fix = one_of(known, found=value) if known else "write a number"
        raise UsageError(f"{value!r} is no value of column {column.name!r}", fix=fix) from None


# ---- expressions


def expression_mask(store: StoredArrays, owner: Owner, text: str, scratch: Scratch) -> Mask:
    """Return for which rows of a type an expression over its columns holds: bool[n].

    Python's comparisons, and, or, not, in, + - * / %, numbers, names of categories in quotes. A row that lacks a value of a
    column that is named does not match. Raises UsageError.
    """
    tree = _parse(text)
    held = {}
    for word, name in _columns(tree).items():
        column = owner.column(name)
        held[word] = (column, *column_values(WholeStore(store), owner.folder, column, scratch))
    out: Mask = scratch.zeros(owner.size, np.bool_)
    for at in slices(owner.size):
        there = np.ones(at.stop - at.start, np.bool_)
        for _, _, present in held.values():
            there &= True if present is None else present[at]
        rows = {name: (column, values[at][there]) for name, (column, values, _) in held.items()}
        try:
            out[at][there] = _Rows(rows, int(np.count_nonzero(there)), text).holds(tree)
        except RecursionError:  # nested too deep, for Pythons that parse what they cannot compute
            raise _no_expression(text) from None
        except (ArithmeticError, TypeError) as error:  # 1 % 0, a number beyond 64 bits, - of bools
            raise UsageError(
                f"{_shown(text)} cannot be computed: {error}", fix="write other numbers, or compare less"
            ) from None
    return out


@dataclass(frozen=True)
class _Rows:
    """Some rows of the columns that an expression names, by what stands for them in it; ``text`` is the whole expression."""

    columns: dict[str, tuple[ColumnSchema, NDArray[Any]]]
    size: int
    text: str

    def holds(self, node: ast.expr) -> Mask:
        """Return for which rows an expression holds: bool[size]."""
        if not isinstance(node, ast.BoolOp):
            return np.broadcast_to(np.asarray(self.value(node), np.bool_), (self.size,)).copy()
        is_and = isinstance(node.op, ast.And)
        out = self.holds(node.values[0])
        for part in node.values[1:]:
            left = np.flatnonzero(out == is_and)  # as in Python, others are not looked at any more
            rows = {word: (column, values[left]) for word, (column, values) in self.columns.items()}
            out[left] = _Rows(rows, left.size, self.text).holds(part)
        return out

    def value(self, node: ast.expr) -> Any:
        """Return what an expression is in every row, or a number."""
        found: Any = None
        match node:
            case ast.BoolOp():
                found = self.holds(node)
            case ast.UnaryOp(op=ast.Not(), operand=one):
                found = ~self.holds(one)
            case ast.UnaryOp(op=ast.USub(), operand=one):
                found = numbers.negative(self.value(one))
            case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _ARITHMETIC:
                found = numbers.computed(_ARITHMETIC[type(sign)], self.value(left), self.value(right))
            case ast.Compare(left=left, ops=ops, comparators=others):
                sides = zip([left, *others], ops, others, strict=False)
                found = np.logical_and.reduce([self._compare(one, op, other) for one, op, other in sides])
            case ast.Name(id=name):
                found = self.columns[name][1]
            case ast.Constant(value=bool() | int() | float() as number):
                found = number
        if found is None:
            part = _HIDDEN.sub(lambda found: f"`{_name(found)}`", ast.unparse(node))
            words = f"{_shown(part)} has no meaning in {_shown(self.text)}"
            raise UsageError(words, fix="compare columns and numbers; and, or, not")
        return found

    def _compare(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> Any:
        if isinstance(op, ast.In | ast.NotIn) and isinstance(right, ast.Tuple | ast.List | ast.Set):
            found = np.logical_or.reduce([self._compare(left, ast.Eq(), one) for one in right.elts] or [np.False_])
            return ~found if isinstance(op, ast.NotIn) else found
        sides = []
        for own, other in ((left, right), (right, left)):
            if isinstance(own, ast.Constant) and isinstance(own.value, str):
                if not isinstance(other, ast.Name):
                    words = f"{_shown(own.value)} is compared with no column in {_shown(self.text)}"
                    raise UsageError(words, fix="compare a column with it")
                sides.append(_parse_value(self.columns[other.id][0], own.value))
            else:
                sides.append(self.value(own))
        if type(op) not in _COMPARE:
            raise UsageError(f"a comparison in {_shown(self.text)} has no meaning", fix="use ==, !=, <, <=, >, >= or in")
        return numbers.compared(_COMPARE[type(op)], *sides)


def check_ids(ids: NDArray[Any], size: int, what: str, place: str) -> NDArray[np.int64]:
    """Return IDs, ascending, each once. Raises DataError for one that is not there."""
    bad = (ids < 0) | (ids >= size)
    if bad.any():
        raise DataError(f"there is no {what} {ids[int(np.argmax(bad))]}: there are {size}", place=place)
    return np.unique(ids.astype(np.int64))
