"""Classes that packages register under an entry point group, ours among them, by name; and modules that users name."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Mapping
from importlib.metadata import EntryPoint
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import NamedTuple, cast

from graphprep.model.errors import UsageError, one_of


class Plugins(NamedTuple):
    """What is registered under ``group``, and ``built_in``, which also works from a checkout that is not installed.

    ``word`` is what messages call one of them; ``choose`` says what to do where two packages have one name.
    """

    group: str
    built_in: Mapping[str, str]
    word: str
    choose: str

    def names(self, registered: Iterable[EntryPoint]) -> tuple[str, ...]:
        """List ours, then those of other packages by name."""
        return (*self.built_in, *sorted(set(map(attrgetter("name"), registered)).difference(self.built_in)))

    def find(self, name: str, registered: Iterable[EntryPoint]) -> type:
        """Load the class of a name.

        Raises UsageError where there is none, where two packages register the name, or where its module cannot be imported.
        """
        points = list(registered)
        places = {point.value: point for point in points if point.name == name}
        if name in self.built_in:
            places.setdefault(self.built_in[name], EntryPoint(name, self.built_in[name], self.group))
        if not places:
            known = one_of(self.names(points), found=name)
            fix = f"{known}, or install a package that registers it under {self.group!r}"
            raise UsageError(f"no {self.word} named {name!r}", fix=fix)
        if len(places) > 1:
            raise UsageError(f"several {self.word}s are named {name!r}: {', '.join(sorted(places))}", fix=self.choose)
        try:
            return cast(type, next(iter(places.values())).load())
        except (ImportError, AttributeError) as error:
            fix = "install what it needs, or reinstall its package"
            raise UsageError(f"{self.word} {name!r} cannot be loaded: {error}", fix=fix) from None


def import_named(path: str, option: str, form: str, what: str) -> tuple[ModuleType, str]:
    """Import the module of ``package.module:name``, also from the current folder; return it with the name.

    ``option`` is what was given, for messages, ``form`` what it is to look like, ``what`` the name is of. Raises UsageError.
    """
    module_name, _, name = path.partition(":")
    if not module_name or not name:
        raise UsageError(f"{option} must be {form}, found {path!r}", fix=f"name the module and {what}")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.append(folder)
    try:
        return importlib.import_module(module_name), name
    except (Exception, SystemExit) as error:  # a module runs as it is imported, and may raise anything
        words = f"{error}" if isinstance(error, ImportError) else f"{type(error).__name__}: {error}"
        raise UsageError(
            f"{option} {path}: module {module_name!r} cannot be imported: {words}",
            fix="install it, or run in the folder that holds it",
        ) from None
