"""Pictures of a report: what they show, that a page needs no other file, and what cannot be drawn."""

import re
import struct
import sys
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import graphprep
from graphprep.cli.main import run
from graphprep.stats.pictures import panels

pd = pytest.importorskip("pandas", reason="pandas is not installed")
scipy = pytest.importorskip("scipy", reason="SciPy is not installed")

KARATE = Path(__file__).resolve().parent.parent / "golden" / "karate_csv" / "store"
NAME = "a<b>&$x$"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Two node types, one of an awkward name, in three partitions, with a label, a text category and a vector."""
    rng, folder = np.random.default_rng(1), tmp_path_factory.mktemp("pictures") / "store"
    size = 400
    nodes = pd.DataFrame({"id": np.arange(size), "y": rng.integers(0, 3, size), "x": rng.normal(size=size), "w": np.ones(size)})
    ends = pd.DataFrame({"src": rng.zipf(1.8, 3000) % size, "dst": rng.integers(0, size, 3000)})
    graphprep.convert(
        nodes={NAME: nodes, "b": pd.DataFrame({"id": [0, 1]})},
        edges={(NAME, "to", NAME): ends, ("b", "of", "b"): pd.DataFrame({"src": [0], "dst": [1]})},
        out=folder,
        partitions=3,
        labels=(f"{NAME}:y",),
    )
    return folder


@pytest.mark.parametrize("kind", ["svg", "png", "html"])
def test_files_are_the_same_for_any_number_of_threads(store, tmp_path, kind):
    for threads in (1, 3):
        graphprep.stats(store, plot=tmp_path / f"{threads}.{kind}", triangles="exact", threads=threads)
    assert (tmp_path / f"1.{kind}").read_bytes() == (tmp_path / f"3.{kind}").read_bytes()


def test_svg_is_xml_with_all_panels(store, tmp_path):
    report = graphprep.stats(store, plot=tmp_path / "all.svg")
    assert report.plot == str(tmp_path / "all.svg")
    root = ET.parse(tmp_path / "all.svg").getroot()
    axes = [one for one in root.iter("{http://www.w3.org/2000/svg}g") if re.fullmatch(r"axes_\d+", one.get("id", ""))]
    assert len(axes) == 4 + 2 + 2  # two edge types; sizes and cut; label and x: all w are alike


def test_png_is_as_large_as_its_panels(store, tmp_path):
    graphprep.stats(store, plot=tmp_path / "all.png")
    data = (tmp_path / "all.png").read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", data[16:24])
    assert width == pytest.approx(2 * 4.6 * 130, abs=2)
    assert height == pytest.approx(4 * 3.2 * 130, abs=2)


class Page(HTMLParser):
    """Collects tags, what they point to, and texts."""

    def __init__(self):
        super().__init__()
        self.tags, self.links, self.texts, self.open = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href", "xlink:href", "data") and value[0] != "#"]
        if tag not in ("meta", "use", "path", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in ("use", "path"):
            assert self.open.pop() == tag

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.texts.append(data.strip())


def test_the_page_needs_no_other_file(store, tmp_path):
    graphprep.stats(store, plot=tmp_path / "page.html", triangles="exact")
    text = (tmp_path / "page.html").read_text()
    page = Page()
    page.feed(text)
    assert page.open == []
    assert page.links == []
    assert not re.search(r"@import|url\((?!#)", text)
    assert "script" not in page.tags
    assert page.tags.count("svg") == 4
    assert NAME in page.texts
    assert {"Types and relations", "Degrees", "Partitions", "Columns", "402", "3,001"} <= set(page.texts)
    ids = re.findall(r'\bid="([^"]+)"', text)
    for one in set(re.findall(r'(?:url\(|xlink:href=")#([\w-]+)', text)):
        assert one in ids


def test_the_law_is_drawn_where_it_is(store):
    """A line from (xmin, p(xmin)) to the largest degree, p being the share of all nodes by SciPy's zeta."""
    from matplotlib.figure import Figure

    report = graphprep.stats(store)
    axes = Figure().add_subplot()
    panels.sections(report)[0].panels[0].draw(axes)
    lines = {line.get_label(): line.get_xydata() for line in axes.lines}
    for name, found in (("in", report.edges[0].in_degrees), ("out", report.edges[0].out_degrees)):
        law = found.power_law
        label = next(one for one in lines if f"= {law.alpha:.2f} from {law.xmin:,}" in one)
        share = law.num_tail / found.count
        at = np.array([law.xmin, found.max])
        wanted = share * at**-law.alpha / scipy.special.zeta(law.alpha, law.xmin)
        assert lines[label] == pytest.approx(np.stack([at, wanted], 1))
        shares = dict(zip(*lines[name].T, strict=True))
        (first,) = (one for one in found.histogram if one.low == 1)
        assert shares[1.0] == first.count / found.count


def test_the_matrix_and_bars_show_the_numbers(store):
    from matplotlib.figure import Figure

    report = graphprep.stats(store)
    sizes, matrix = (Figure().add_subplot() for _ in range(2))
    for panel, axes in zip(panels.sections(report)[1].panels, (sizes, matrix), strict=True):
        panel.draw(axes)
    assert [text.get_text() for text in matrix.texts] == [f"{n:,}" for row in report.parts.cut_matrix for n in row]
    nodes = [sum(one) for one in zip(*report.parts.nodes.values(), strict=True)]
    assert [bar.get_height() for bar in sizes.containers[0]] == pytest.approx([3 * n / sum(nodes) for n in nodes])


def test_histograms_count_every_value(store):
    column = next(one for one in graphprep.stats(store, histograms=True).nodes[0].columns if one.name == "x")
    values = graphprep.load(store).column(NAME, "x")
    wanted, edges = np.histogram(values, 20)
    assert [one.count for one in column.histogram] == wanted.tolist()
    assert [one.low for one in column.histogram] == pytest.approx(edges[:-1].tolist())
    assert graphprep.stats(store).nodes[0].columns[1].histogram == ()


@pytest.mark.parametrize(
    ("values", "num_bins"),
    [
        ([1.0, np.nextafter(1, 2), 1.0], 1),
        ([0.0, 5e-324, 0.0], 1),
        ([2**60, 2**60 + 1, 2**60], 0),
        ([1_600_000_000_000_000_000 + 100 * n for n in range(11)], 4),
    ],
)
def test_values_that_are_close_have_fewer_bins(values, num_bins, tmp_path):
    """float64 has at most ``num_bins`` steps between the least and the largest value."""
    graphprep.convert(
        nodes={"n": pd.DataFrame({"id": range(len(values)), "x": values})},
        edges={"n:to:n": pd.DataFrame({"src": [0], "dst": [1]})},
        out=tmp_path / "s",
    )
    graphprep.stats(tmp_path / "s", plot=tmp_path / "a.html")
    (column,) = graphprep.stats(tmp_path / "s", histograms=True).nodes[0].columns
    assert len(column.histogram) == num_bins
    assert sum(one.count for one in column.histogram) == (len(values) if num_bins else 0)
    for one in column.histogram[:-1]:
        assert one.count == sum(one.low <= float(value) < one.high for value in values)


def test_laws_of_degrees_that_are_nearly_equal_are_drawn(tmp_path):
    """Of such a law of x^-alpha, xmin^alpha is beyond float64."""
    size, degree = 1001, 50
    src = np.append(np.repeat(np.arange(size), degree), 0)
    dst = np.append((np.arange(size)[:, None] + np.arange(1, degree + 1)).reshape(-1) % size, 60)
    graphprep.convert(edges={"n:to:n": pd.DataFrame({"src": src, "dst": dst})}, out=tmp_path / "s")
    report = graphprep.stats(tmp_path / "s", plot=tmp_path / "a.svg")
    assert report.edges[0].out_degrees.power_law.alpha > 300
    assert "path" in (tmp_path / "a.svg").read_text()


def test_a_graph_without_anything_is_drawn(tmp_path):
    graphprep.convert(
        nodes={"n": pd.DataFrame({"id": [1, 2]})},
        edges={"n:to:n": pd.DataFrame({"src": [], "dst": []}, dtype=int)},
        out=tmp_path / "s",
        allow_empty=True,
    )
    for kind in ("png", "html"):
        graphprep.stats(tmp_path / "s", plot=tmp_path / f"a.{kind}")
        assert (tmp_path / f"a.{kind}").stat().st_size > 500


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (
            ["--plot", "a.pdf"],
            2,
            "error: --plot a.pdf: this name says not which kind of pictures it holds\n"
            "  fix: let it end in .svg, .png or .html\n",
        ),
        (["--plot", "there.svg"], 2, "error: there.svg: the file exists\n  fix: add --overwrite, or choose another name\n"),
        (["--plot", "folder.svg"], 2, "error: folder.svg: this is a folder\n  fix: name a file\n"),
        (["--overwrite"], 2, "error: --overwrite does nothing without --plot\n  fix: leave it out\n"),
        (
            ["--plot", str(KARATE / "a.svg")],
            2,
            f"error: {KARATE}/a.svg: this is inside the store {KARATE}\n  fix: name a file outside of it\n",
        ),
        (
            ["--plot", str(KARATE / "part-00000" / "a.html")],
            2,
            f"error: {KARATE}/part-00000/a.html: this is inside the store {KARATE}\n  fix: name a file outside of it\n",
        ),
        (["--plot", "there.svg/a.svg"], 3, "error: there.svg/a.svg: "),
    ],
)
def test_pictures_that_cannot_be_are_refused_before_anything_is_done(args, code, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("there.svg").write_text("mine")
    Path("folder.svg").mkdir()
    assert run(["stats", str(KARATE), *args]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder.svg", "there.svg"]
    assert Path("there.svg").read_text() == "mine"
    assert not [*KARATE.glob("*.svg"), *KARATE.glob("*/*.html")]


def test_an_old_file_is_replaced_where_that_is_asked_for(tmp_path, capsys):
    path = tmp_path / "a.html"
    path.write_text("old")
    assert run(["stats", str(KARATE), "--plot", str(path), "--overwrite"]) == 0
    assert f"{path}\n" in capsys.readouterr().out
    assert path.read_text().startswith("<!DOCTYPE html>")


def test_a_missing_library_is_told_with_its_cure(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert run(["stats", str(KARATE), "--plot", str(tmp_path / "a.svg")]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(r"error: --plot needs matplotlib: .*\n  fix: pip install 'graphprep\[plots\]'\n", err)
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------------------------------------- the page


@pytest.fixture(scope="module")
def rated(tmp_path_factory):
    """Users who rate films: times in seconds since 1970, a number that is no time, a category, and an ID of another system."""
    folder = tmp_path_factory.mktemp("rated")
    (folder / "user.csv").write_text("id,city\n1,Oslo\n2,Rome\n3,Oslo\n")
    (folder / "film.csv").write_text("id,shop_id,year\n1,77,1999\n2,99,2010\n")
    (folder / "rates.csv").write_text("src,dst,at\n1,1,1289241911\n2,2,1300000000\n3,1,1453684323\n")
    (folder / "knows.csv").write_text("src,dst\n1,2\n")
    nodes = [word for name in ("user", "film") for word in ("--nodes", f"{name}={folder}/{name}.csv")]
    edges = ["--edges", f"user:rates:film={folder}/rates.csv", "--edges", f"user:knows:user={folder}/knows.csv"]
    words = [
        "convert",
        *nodes,
        *edges,
        str(folder / "store"),
        "--time-col",
        "user:rates:film=at",
        "--category",
        "user:city",
        "-q",
    ]
    assert run(words) == 0
    return folder / "store"


def _columns(report):
    return {column.name: column for _, column in report.all_columns()}


def test_times_are_dates_and_codes_and_ids_have_no_mean(rated, tmp_path):
    found = _columns(graphprep.stats(rated, plot=tmp_path / "page.html"))
    time = found["time"]
    assert (time.unit, time.words(time.min), time.words(time.max)) == ("s", "2010-11-08 18:45:11", "2016-01-25 01:12:03")
    assert (found["year"].unit, found["year"].mean, found["year"].words(1999)) == (None, 2004.5, "1,999")
    assert (found["shop_id"].is_amount, found["shop_id"].mean) == (False, None)
    assert (found["city"].is_amount, found["city"].mean, found["city"].counts) == (False, None, {"Oslo": 2, "Rome": 1})
    page = Page()
    page.feed((tmp_path / "page.html").read_text())
    assert {"2010-11-08", "2016-01-25", "–"} <= set(page.texts)
    assert any("time, UTC" in text for text in page.texts)


def test_a_time_of_any_unit_is_a_date():
    from graphprep.model.options.stats import time_text

    for unit, value in (("day", 14_921), ("s", 1_289_174_400), ("ms", 1_289_174_400_000), ("ns", 1_289_174_400 * 10**9)):
        assert time_text(value, unit) == "2010-11-08"
    assert time_text(10**18, "s") == "1,000,000,000,000,000,000"  # beyond the calendar


def test_the_picture_of_types_has_all_numbers(rated, tmp_path):
    graphprep.stats(rated, plot=tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    picture = text[text.index('aria-label="types"') : text.index("</svg>")]
    assert picture.count("<circle") == 2
    for told in ("rates: 3", "knows: 1", ">user<", ">film<", "user: 3 nodes", "film: 2 nodes"):
        assert told in picture, told


def test_hubs_are_not_cut(rated, tmp_path):
    graphprep.stats(rated, plot=tmp_path / "page.html", top=3)
    text = (tmp_path / "page.html").read_text()
    assert "1 (2), 2 (2), 3 (1)" in text
    assert 'table class="texts"' in text


def test_a_law_of_a_few_nodes_is_not_shown(rated, store, tmp_path):
    assert all(panels.law_of(found) is None for _, found in graphprep.stats(rated).all_degrees())
    graphprep.stats(store, plot=tmp_path / "page.html")
    assert "is how far it lies off at most" in (tmp_path / "page.html").read_text()


@pytest.mark.long
def test_pictures_of_many_relations_take_no_longer_than_those_of_a_few(tmp_path):
    """Of 46 relations those of the most edges are drawn, and matplotlib measures few texts."""
    from matplotlib import text

    rows = pd.DataFrame({"src": np.arange(60), "dst": (np.arange(60) ** 2 + 1) % 60})
    graphprep.convert(edges={f"n:r{number}:n": rows for number in range(46)}, out=tmp_path / "s")
    measured, layout = [], text.Text._get_layout
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text.Text, "_get_layout", lambda self, renderer: measured.append(1) or layout(self, renderer))
        graphprep.stats(tmp_path / "s", plot=tmp_path / "page.html")
    assert len(measured) < 1500
    assert "40 more edge types are not drawn" in (tmp_path / "page.html").read_text()
