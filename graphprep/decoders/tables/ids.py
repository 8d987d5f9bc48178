"""What raw IDs are, one ID space after the other: whole numbers, signed integers or texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from graphprep.decoders.cells.columns import IdKind
from graphprep.model.errors import DataError, UsageError
from graphprep.model.graph_config import IdType


@dataclass(frozen=True)
class KeyUse:
    """One place where IDs of a space stand: a column of a table.

    ``given`` is the ID type that the table itself asks for. ``by`` is a file of the table, "" where none is meant, and ``held``
    what its own types say, None for text. ``is_numbered``: IDs are the numbers of rows, or 0..n-1.
    """

    given: IdType | None = None
    held: IdKind | None = None
    is_numbered: bool = False
    by: str = ""
    place: str = ""


@dataclass
class IdSpaces:
    """All ID spaces of a graph, and where their IDs stand. ``id_type`` holds where no table says otherwise."""

    id_type: IdType | None = None
    settled: Sequence[str] = ()
    uses: dict[str, list[KeyUse]] = field(default_factory=dict)

    def add(self, space: str, use: KeyUse) -> None:
        """Note where IDs stand."""
        self.uses.setdefault(space, []).append(use)

    def kinds(self) -> dict[str, IdKind]:
        """Settle what the IDs of each space are.

        Raises UsageError where tables ask for different types, DataError where files hold different ones.
        """
        return {space: self._kind(space, uses) for space, uses in self.uses.items()}

    def open_spaces(self) -> tuple[str, ...]:
        """Return the spaces that are read as texts until all of their IDs are known."""
        return tuple(space for space, uses in self.uses.items() if self._is_auto(space, uses))

    def signed_spaces(self, kinds: Mapping[str, IdKind]) -> tuple[str, ...]:
        """Return the spaces whose integers are int64."""
        return tuple(space for space, kind in kinds.items() if kind == "int")

    def _is_auto(self, space: str, uses: Sequence[KeyUse]) -> bool:
        if self._asked(space, uses) != "auto" or space in self.settled:
            return False
        return any(use.held != "uint" for use in uses if use.by)

    def _kind(self, space: str, uses: Sequence[KeyUse]) -> IdKind:
        asked = self._asked(space, uses)
        if asked == "auto":
            return "string" if self._is_auto(space, uses) else "int"
        return asked or self._found(space, uses)

    def _asked(self, space: str, uses: Sequence[KeyUse]) -> IdType | None:
        """Return the type that is asked for: by a table, by rows that are numbered, or for all tables."""
        given = [use for use in uses if use.given is not None]
        for use in given[1:]:
            if use.given != given[0].given:
                raise UsageError(
                    f"IDs of {space!r} are {use.given} here, but {given[0].given} in {given[0].place}",
                    place=use.place,
                    fix="give all tables of a node type one ID type",
                )
        numbered = [use for use in uses if use.is_numbered]
        if given and numbered and given[0].given in ("string", "auto"):
            raise UsageError(
                f"IDs of {space!r} are the numbers of rows, but {given[0].given} is asked for",
                place=given[0].place,
                fix="leave out the ID type",
            )
        if given:
            return given[0].given
        return "uint" if numbered else self.id_type

    def _found(self, space: str, uses: Sequence[KeyUse]) -> IdKind:
        """Return what the files' own types say; text follows them, and holds whole numbers where there are none."""
        held = {use.held: use for use in reversed(uses) if use.held is not None}
        if len(held) > 1:
            texts, integers = held["string"], held.get("uint") or held["int"]
            raise DataError(
                f"IDs of {space!r} are strings here, but integers in {integers.by}",
                place=texts.by,
                fix="write them alike, or pass --id-type string",
            )
        return next((kind for kind in held if kind is not None), "uint")
