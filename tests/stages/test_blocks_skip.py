"""Faulty records are found one by one, or all at once by decoders that can: the report and what is left are the same."""

from __future__ import annotations

import random
import time

import pytest

import graphprep
from graphprep.decoders.edges import EdgesDecoder
from graphprep.decoders.tables import TablesDecoder
from graphprep.decoders.triples import TriplesDecoder
from graphprep.model.errors import DecodeError
from graphprep.model.graph_config import EdgeTable, GraphConfig, TableConfig
from graphprep.model.protocols import TextBlock
from graphprep.stages import blocks
from graphprep.storage.urls import Storage

ODD = ["x", "-1", "", "9" * 23, "1e5", '"3"', '"a', '3"4', "\xff", "NA", "1.5", "#"]


class OneByOne:
    """A decoder that tells the first fault of a block only."""

    def __init__(self, decoder):
        self.decode = decoder.decode


def draw_lines(rng, delimiter, good):
    """Return lines of which the first three are sound, and many are not."""
    lines = [delimiter.join(good)] * 3
    for _ in range(rng.randint(3, 40)):
        fields = list(good)
        for _ in range(rng.choice([0, 0, 0, 1, 1, 2])):
            fields[rng.randrange(len(fields))] = rng.choice(ODD)
        fields = fields[: rng.randrange(len(fields) + 1)] if rng.random() < 0.15 else fields
        lines.append(delimiter.join([*fields, *(["9"] if rng.random() < 0.1 else [])]))
    return lines


def edges_span(folder, delimiter, good, **options):
    path = folder / "e.txt"
    path.write_text(delimiter.join(good) + "\n")
    decoder = EdgesDecoder(header="no", delimiter=delimiter.strip() or None, **options)
    return decoder, decoder.plan(Storage(), [str(path)]).spans[0]


def tables_span(folder, delimiter, good, **options):
    path = folder / "t.csv"
    path.write_text(delimiter.join(good) + "\n")
    table = TableConfig((str(path),), header="no", delimiter=delimiter, columns=(("col_2", "float32"),), **options)
    decoder = TablesDecoder()
    return decoder, decoder.plan_graph(Storage(), GraphConfig(edges=(EdgeTable("a", "r", "a", table),))).spans[0]


def triples_span(folder, delimiter, good):
    path = folder / "train.tsv"
    path.write_text("".join(delimiter.join([*good[:1], "likes", *good[1:2]]) + "\n" for _ in range(3)))
    decoder = TriplesDecoder()
    return decoder, decoder.plan(Storage(), [str(path)]).spans[0]


CASES = {
    "plain": (edges_span, ["1", "2"], [{}, {"quote": True}, {"id_type": "int"}, {"id_type": "string"}]),
    "weight": (edges_span, ["1", "2", "0.5"], [{"weight_col": "2"}, {"weight_col": "2", "quote": False}]),
    "time": (edges_span, ["1", "2", "77"], [{"time_col": "2"}, {"columns": ("col_2=int32",)}]),
    "table": (tables_span, ["1", "2", "0.5"], [{}, {"quote": False}, {"nulls": ("x",)}, {"id_type": "int"}]),
    "triples": (triples_span, ["1", "2", "3"], [{}]),
}


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("name", CASES)
def test_all_faults_at_once_are_those_found_one_by_one(name, seed, tmp_path):
    rng = random.Random(seed)
    span_of, good, choices = CASES[name]
    num_bad = 0
    for options in choices:
        delimiter = "\t" if name == "triples" else rng.choice([",", "\t"])
        decoder, span = span_of(tmp_path, delimiter, good, **options)
        for _ in range(4):
            data = ("\n".join(draw_lines(rng, delimiter, good)) + rng.choice(["", "\n"])).encode("latin1")
            block = TextBlock(data, span, first_line=3, is_first=rng.random() < 0.5)
            (found, bad), (other, wanted) = (blocks.decode_block(one, block, skip=True) for one in (decoder, OneByOne(decoder)))
            assert bad == wanted
            assert found.cuts is None or found.cuts.original(0) == other.cuts.original(0)
            assert found.rows.num_records == other.rows.num_records
            if found.rows.edges is not None:
                assert found.rows.edges.num_rows == other.rows.edges.num_rows
            num_bad += len(bad)
    assert num_bad > 10


class Stricter(EdgesDecoder):
    """A class of a stranger, which refuses more than the one that it is made of."""

    def decode(self, block, places=False):
        at = (b"\n" + block.data).find(b"\n13,")
        try:
            rows = super().decode(block, places)
        except DecodeError as error:
            if not 0 <= at < error.at:
                raise
        if at >= 0:
            raise DecodeError("13 is no node", at=at)
        return rows


def test_a_class_that_refuses_more_than_what_finds_all_faults(tmp_path):
    _, span = edges_span(tmp_path, ",", ["1", "2"])
    block = TextBlock(b"1,2\n13,1\nx,1\n2,3\n13,7\n4,5\n", span)
    found, bad = blocks.decode_block(Stricter(header="no"), block, skip=True)
    assert found.rows.edges.src.tolist() == [1, 2, 4]
    assert [record.place.rpartition("e.txt:")[2] for record in bad] == ["2:1", "3:1", "5:1"]


def test_200_000_bad_lines(tmp_path):
    """Linear, and far from the 0.7 ms a line that trying each on its own took."""
    path = tmp_path / "e.txt"
    path.write_text("".join(f"{i} {i + 1}\nx{i} 3\n" for i in range(200_000)))
    began = time.process_time()
    done = graphprep.convert(path, tmp_path / "out", format="edges", on_error="skip", bad_records=str(tmp_path / "bad"))
    assert time.process_time() - began < 30
    assert done.num_skipped == 200_000
    with (tmp_path / "bad").open() as lines:
        for number, line in enumerate(lines):
            if number % 9973 == 0:
                assert line == (
                    f'{{"place": "{path}:{2 * number + 2}:1", "reason": "field \'src\' must be an integer, '
                    f"found 'x{number}'\"}}\n"
                )
    assert number == 199_999
