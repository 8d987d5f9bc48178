"""What the columns that operations make are called: as they are by default, or as ``--as`` says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from graphprep.convert.columns.roles import decoded_name
from graphprep.model.errors import UsageError, one_of
from graphprep.model.schema import ColumnSchema


@dataclass(frozen=True)
class MadeNames:
    """The names that were chosen, by those that columns have by default."""

    chosen: Mapping[str, str] = field(default_factory=dict)

    def of(self, name: str, owner: str, columns: Iterable[ColumnSchema]) -> str:
        """Return what a column that is made is called. Raises UsageError where ``columns`` of ``owner`` have that name."""
        wanted = self.chosen.get(name, name)
        if any(column.name == wanted for column in columns):
            raise UsageError(
                f"{owner!r} has a column {wanted!r} already",
                fix=f"choose another name for what is made, with --as {name}=NAME, or drop the column, with drop-columns",
            )
        return wanted


def parse_names(words: Sequence[str], made: Sequence[str]) -> MadeNames:
    """Read ``NAME`` or ``COLUMN=NAME``, in which ``%3D`` stands for ``=``; ``made`` are the columns that operations make.

    Raises UsageError.
    """
    pairs = [_parse(word, made) for word in words]
    for name, wanted in pairs:
        if name not in made:
            fix = one_of(made, "write COLUMN=NAME; COLUMN is one of", found=name) if made else "leave --as out"
            raise UsageError(f"no column {name!r} is made", place="--as", fix=fix)
        if not wanted or [one for one, _ in pairs].count(name) > 1:
            raise UsageError(f"column {name!r} needs one name", place="--as", fix="write COLUMN=NAME")
    chosen = dict(pairs)
    final = [chosen.get(name, name) for name in made]
    if twice := [name for name in final if final.count(name) > 1]:
        raise UsageError(f"two columns are to be called {twice[0]!r}", place="--as", fix="choose a name for each")
    return MadeNames(chosen)


def _parse(word: str, made: Sequence[str]) -> tuple[str, str]:
    head, equals, name = word.partition("=")
    if equals:
        return decoded_name(head), decoded_name(name)
    if len(made) != 1:
        fix = one_of(made, "write COLUMN=NAME; COLUMN is one of") if made else "leave --as out"
        raise UsageError(f"{word!r} is the name of no single column", place="--as", fix=fix)
    return made[0], decoded_name(word)
