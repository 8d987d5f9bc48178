"""The navigation of the site: what docs/README.md lists, group by group."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from posixpath import normpath

_LINE = re.compile(r"^(?:## (?P<group>.+)|(?P<indent> *)- \[(?P<title>[^\]]+)\]\((?P<path>[^)#]+)\).*)$", re.M)


@dataclass(frozen=True)
class Entry:
    """A page, by its path in the repository, and the pages below it."""

    title: str
    path: str
    below: tuple[Entry, ...] = ()


@dataclass(frozen=True)
class Group:
    """Pages under one heading."""

    name: str
    entries: tuple[Entry, ...] = ()

    def paths(self) -> list[str]:
        """List all pages, those below others too."""
        return [page.path for entry in self.entries for page in (entry, *entry.below)]


def read_groups(root: Path) -> list[Group]:
    """Read the groups of ``root``/docs/README.md, in order. Raises ValueError for a page that stands before any heading."""
    groups: list[Group] = []
    for match in _LINE.finditer((root / "docs" / "README.md").read_text()):
        if match["group"]:
            groups.append(Group(match["group"]))
            continue
        if not groups:
            raise ValueError(f"docs/README.md: {match['path']} stands in no group")
        *entries, last = (*groups[-1].entries, Entry(match["title"], normpath(f"docs/{match['path']}")))
        if match["indent"]:
            *entries, parent = entries
            last = Entry(parent.title, parent.path, (*parent.below, last))
        groups[-1] = Group(groups[-1].name, (*entries, last))
    return groups


def toctree(entries: tuple[Entry, ...], caption: str = "") -> str:
    """Write a hidden table of contents as MyST has it."""
    head = f":caption: {caption}\n" if caption else ""
    lines = "".join(f"{entry.title} </{entry.path.removesuffix('.md')}>\n" for entry in entries)
    return f"\n\n```{{toctree}}\n:hidden:\n{head}\n{lines}```\n"
