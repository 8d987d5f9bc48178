"""What functions return shows itself in a few lines, and as a table in notebooks."""

import html
import re

import graphprep
from graphprep.model.shown.results import Card, type_rows


def test_a_card_is_lines_of_text_and_a_table():
    card = Card("a <b>", type_rows({"user": 12345, "i": 1}, {"u:r:i": None}, {"user": ["age", "city"]}), ("one & more",))
    assert (
        card.text() == "a <b>\n  nodes  user   12,345  age, city\n  nodes  i           1\n  edges  u:r:i       ?\n  one & more"
    )
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", card.html())
    assert cells == ["nodes", "user", "12,345", "age, city", "nodes", "i", "1", "", "edges", "u:r:i", "?", ""]
    assert card.html().startswith("<div><div><b>a &lt;b&gt;</b></div><table>")
    assert "one &amp; more" in card.html()


def test_every_result_is_short(sample_data, tmp_path):
    out = str(tmp_path / "karate")
    made = graphprep.convert(str(sample_data / "karate/karate.csv"), out, partitions=2)
    lines = repr(made).splitlines()
    assert lines[:3] == [f"{out}: 34 nodes, 78 edges, 2 partitions", "  nodes  _N        34", "  edges  _N:_E:_N  78"]
    assert re.fullmatch(r"  read \S+ B, wrote [\d.]+ KB in [\d.]+ s", lines[3])
    reordered = graphprep.reorder(out, str(tmp_path / "hot"))
    assert repr(reordered).splitlines()[0] == f"{tmp_path}/hot: 34 nodes, 78 edges, nodes by degree"
    exported = graphprep.export(out, str(tmp_path / "edges"), "edges")
    assert repr(exported).splitlines()[0] == f"{tmp_path}/edges: edges, 34 nodes, 78 edges, 2 partitions"
    generated = graphprep.generate("grid", str(tmp_path / "grid.txt"), rows=3, cols=3)
    assert repr(generated).splitlines()[0] == f"{tmp_path}/grid.txt: grid, edges, 9 nodes, 24 edges"
    report = graphprep.validate(out)
    assert repr(report).splitlines()[0] == f"{out}: sound"
    info = graphprep.info(out)
    assert repr(info).splitlines()[1:] == ["  nodes  _N        34", "  edges  _N:_E:_N  78  weight"]
    checked = graphprep.validate(str(sample_data / "karate/karate.csv"))
    assert repr(checked).splitlines()[0] == "edges: 78 records"
    for one in (made, reordered, exported, generated, report, info, checked):
        assert one._repr_html_().startswith("<div><div><b>")
        assert len(repr(one).splitlines()) < 10


def test_a_guessed_graph_shows_its_config(tmp_path):
    (tmp_path / "users.csv").write_text("user_id,name\nann,<A>\nbob,B\n")
    (tmp_path / "knows.csv").write_text("user_id,other_id\nann,bob\n")
    guessed = graphprep.info(str(tmp_path))
    assert repr(guessed).splitlines() == guessed.yaml().splitlines()
    assert guessed._repr_html_() == "<pre>" + html.escape(guessed.yaml().rstrip("\n")) + "</pre>"


def test_a_result_hides_passwords_and_writes_control_characters_out():
    card = Card("s3://me:secret@host/out", type_rows({"a\x1b[31m": 1}, {}), ("https://host/x?token=abcdef",))
    assert card.text() == "s3://me:…@host/out\n  nodes  a\\x1b[31m  1\n  https://host/x"
    assert "secret" not in card.html()
    assert "\x1b" not in card.html()


def test_long_notes_break_between_words():
    note = 'node type \'_N\': 0..13 are its nodes: ids="dense" (chosen by ids="auto"); 1 of them has no edge, ' + "x" * 90
    lines = Card("title", notes=(note,)).text().splitlines()
    assert [len(line) <= 80 for line in lines] == [True, True, True, False]
    assert lines[1].startswith("  node type") and lines[2].startswith("    ") and lines[3] == "    " + "x" * 90
    assert " ".join(line.strip() for line in lines[1:]) == note
