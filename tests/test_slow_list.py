"""The list of slow tests names tests that are there: one that was renamed would be quick by mistake."""

import re
from pathlib import Path

import slow

ROOT = Path(__file__).resolve().parents[1]


def test_every_slow_test_is_there():
    lost = []
    for name in {name for name, _ in slow.marks()} | slow.KEPT:
        path, _, test = name.partition("::")
        text = (ROOT / path).read_text() if (ROOT / path).is_file() else ""
        if not re.search(rf"^(?:def|class) {test.partition('::')[0]}\b", text, re.MULTILINE):  # a class may inherit it
            lost.append(name)
    assert not lost, "tests/slow.py writes the list anew"


def test_tests_that_are_kept_are_long():
    listed = dict(line.split(maxsplit=1)[::-1] for line in slow.SLOW.read_text().splitlines())
    assert [name for name in sorted(slow.KEPT) if float(listed[name]) < slow.LONG_S] == []
