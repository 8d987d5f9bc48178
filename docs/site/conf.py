"""Sphinx makes the site of the Markdown files as they lie in the repository: ``make site``."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from pygments.lexers.shell import BashSessionLexer

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).parent))

from navigation import Entry, read_groups, toctree  # noqa: E402

from graphprep import __version__  # noqa: E402

project = "graphprep"
version = release = __version__
copyright = "the authors of graphprep, Apache-2.0"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
root_doc = "README"
include_patterns = ["*.md", "docs/**.md", "benchmarks/README.md", "sample_data/README.md"]
exclude_patterns = [".*", "graphprep", "tests", "site", "build", "out", "dist"]
myst_heading_anchors = 4
nitpicky = False

html_theme = "furo"
html_title = f"graphprep {version}"
html_static_path = ["style.css"]
html_css_files = ["style.css"]
html_favicon = "icon.svg"
html_extra_path = ["index.html"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"top_of_page_buttons": []}

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
add_module_names = False
maximum_signature_line_length = 88
suppress_warnings = ["misc.highlighting_failure"]  # grammars have more than the lexer of EBNF knows

_REFERENCE = Entry("Python, from docstrings", "docs/site/api.md")


def _tables_of_contents() -> dict[str, str]:
    """Return what is added to pages: to the front page every group, to a page with others below it these."""
    added, front = {}, toctree((Entry("All pages", "docs/README.md"),))
    for group in read_groups(ROOT):
        has_python = "docs/python.md" in group.paths()
        front += toctree((*group.entries, _REFERENCE) if has_python else group.entries, group.name)
        added |= {entry.path.removesuffix(".md"): toctree(entry.below) for entry in group.entries if entry.below}
    return {root_doc: front, **added}


def _add_table_of_contents(app: object, docname: str, source: list[str]) -> None:
    source[0] += _TABLES.get(docname, "")


_TABLES = _tables_of_contents()


class _SessionLexer(BashSessionLexer):
    """A session as docs/sessions.py has it: commands begin with ``$``, never with ``#``, which stands in outputs."""

    name = "Session"
    aliases = ()
    _ps1rgx = re.compile(r"^(\$ )(.*\n?)")


def setup(app: object) -> None:
    """Sphinx calls this."""
    app.add_lexer("console", _SessionLexer)  # type: ignore[attr-defined]
    app.connect("source-read", _add_table_of_contents)  # type: ignore[attr-defined]
