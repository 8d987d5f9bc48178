"""The site has every page, is built without a warning, and leads nowhere outside of itself for what it shows."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

import graphprep

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "docs" / "site"


def _load_navigation():
    """Import docs/site/navigation.py, which is no part of the package."""
    spec = importlib.util.spec_from_file_location("navigation", SITE / "navigation.py")
    module = sys.modules["navigation"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


navigation = _load_navigation()


def test_the_navigation_has_every_page_once():
    found = [path for group in navigation.read_groups(ROOT) for path in group.paths()]
    pages = {path.relative_to(ROOT).as_posix() for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]}
    pages -= {"README.md", "docs/README.md", "docs/site/api.md"}  # the front page, the list, and what the site adds to it
    assert sorted(found) == sorted([*pages, "benchmarks/README.md", "sample_data/README.md"]), "docs/README.md lists all pages"


def test_the_front_page_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 200


def test_the_groups_are_headings_and_pages_may_have_pages_below(tmp_path):
    (tmp_path / "docs").mkdir()
    page = tmp_path / "docs" / "README.md"
    page.write_text("# T\n\n[x](x.md)\n\n## A\n\n- [One](one.md): `1`\n  - [Two](sub/two.md)\n\n## B\n\n- [Log](../LOG.md)\n")
    entry, group = navigation.Entry, navigation.Group
    assert navigation.read_groups(tmp_path) == [
        group("A", (entry("One", "docs/one.md", (entry("Two", "docs/sub/two.md"),)),)),
        group("B", (entry("Log", "LOG.md"),)),
    ]
    page.write_text("- [One](one.md)\n")
    with pytest.raises(ValueError, match=r"^docs/README\.md: one\.md stands in no group$"):
        navigation.read_groups(tmp_path)


def test_the_reference_has_every_public_name():
    named = re.findall(r"^\.\. auto\w+:: (\w+)$", (SITE / "api.md").read_text(), re.M)
    assert sorted([*named, "__version__"]) == sorted(dir(graphprep))


# ---------------------------------------------------------------------------------------------- the built site


class _Page(HTMLParser):
    """The anchors of a page, where it leads, and what it loads to be shown."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.anchors |= {values[key] for key in ("id", "name") if values.get(key)}
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        if tag in ("script", "img", "iframe", "source") and values.get("src"):
            self.loaded.append(values["src"])
        if tag == "link" and values.get("rel") in ("stylesheet", "icon", "preload"):
            self.loaded.append(values["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    for name in ("sphinx", "myst_parser", "furo"):
        pytest.importorskip(name, reason=f"{name} is not installed: pip install '.[docs]'")
    folder = tmp_path_factory.mktemp("site")
    words = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "--keep-going",
        "-q",
        "-c",
        SITE,
        "-d",
        folder / "trees",
        ROOT,
        folder / "out",
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "out"


@pytest.fixture(scope="module")
def pages(site):
    return {path: _Page(path.read_text()) for path in site.rglob("*.html")}


@pytest.mark.heavy
def test_links_of_the_site_lead_somewhere(pages, site):
    for path, page in pages.items():
        for link in page.links:
            if re.match(r"[a-z]+:", link):
                continue
            file, anchor = urldefrag(unquote(link))
            target = (path.parent / file).resolve() if file else path
            assert target.is_file(), f"{path.relative_to(site)}: {link}"
            if anchor and target in pages:
                assert anchor in pages[target].anchors, f"{path.relative_to(site)}: {link}"


@pytest.mark.heavy
def test_the_site_loads_nothing_from_elsewhere(pages, site):
    for path, page in pages.items():
        for what in page.loaded:
            file = unquote(what.partition("?")[0])
            assert not re.match(r"([a-z]+:)?//", what), f"{path.relative_to(site)} loads {what}"
            assert what.startswith("data:") or (path.parent / file).is_file(), f"{path.relative_to(site)}: {what}"
    for style in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(https?:)?//|@import", style.read_text()), style


@pytest.mark.heavy
def test_the_site_has_the_front_page_the_pages_and_a_search(pages, site):
    front = pages[site / "README.html"]
    for group in navigation.read_groups(ROOT):
        for path in group.paths():
            assert f"{path.removesuffix('.md')}.html" in front.links, path
    assert "docs/site/api.html" in front.links
    assert "url=README.html" in (site / "index.html").read_text()
    index = json.loads((site / "searchindex.js").read_text().removeprefix("Search.setIndex(").removesuffix(")"))
    assert {"docs/split", "docs/export"} <= {index["docnames"][page] for page in index["titleterms"]["negat"]}
    assert {"docs/partition", "docs/cli"} <= {index["docnames"][page] for page in index["terms"]["fennel"]}
    assert "convert" in [name for *_, name in index["objects"]["graphprep"]]
