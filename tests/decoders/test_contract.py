"""The contract of decoders, over every decoder of text that we ship, over the adapter, and over broken ones."""

from __future__ import annotations

import pytest

from graphprep.decoders.adapter import LineDecoderAdapter
from graphprep.decoders.deepgnn.edgelist import EdgeListDecoder
from graphprep.decoders.deepgnn.json_lines import JsonDecoder
from graphprep.decoders.deepgnn.tsv import TsvDecoder
from graphprep.decoders.edges.decoder import EdgesDecoder
from graphprep.model.rows import RawRows
from graphprep.testing.contract import DecoderContract


class TestJson(DecoderContract):
    lines = (
        b'{"node_id": 5, "node_type": 0, "node_weight": 1, "float_feature": {"0": [1, 2.5], "2": [[1, null], [NaN, 4]]}, "edge": []}',
        b'{"node_id": 7, "node_type": 1, "node_weight": 0.5, "binary_feature": {"1": "a\\n\xc3\xa9\\ud83d\\ude00"}, "foo": {"a": [1]}, '
        b'"edge": [{"src_id": 7, "dst_id": 5, "edge_type": 3, "weight": 1e-3, "uint64_feature": {"0": 18446744073709551615}}]}',
        b'{"node_id": 18446744073709551615, "node_type": 0, "node_weight": NaN, "created_at": 3, "neighbor": {"0": {"5": 1, "7": 2}}}',
        b'{"node_id": 1, "node_type": 0, "node_weight": 1, "edge": [{"src_id": 1, "dst_id": 1, "edge_type": 0, "weight": 1, '
        b'"sparse_int8_feature": {"3": {"coordinates": [[1, 2], [3, 4]], "values": [-5, 6]}, "4": {"coordinates": [9], "values": 1}}, '
        b'"removed_at": 9}], "neighbor": {"0": {"1": 2}}}',
        b'{"node_id": 2, "node_type": 0, "node_weight": 1, "edge": [], "int16_feature": {"0": [{"values": [1, 2], "created_at": 5}, '
        b'{"values": [], "created_at": 1, "removed_at": 4}]}, "binary_feature": {"9": [{"values": "x", "created_at": 0}]}}',
    )  # fmt: skip
    bad_lines = (
        (b"{", "the line ends inside a JSON document"),
        (b'{"node_id": 1, "node_type": 0, "node_weight": 1}', "key 'edge' is missing"),
        (b'{"node_id": -1, "node_type": 0, "node_weight": 1, "edge": []}', "field 'node_id' must be an integer from 0 to 2^64-1"),
        (b'{"node_id": 1, "node_type": 0, "node_weight": 1, "edge": [], "uint8_feature": {"0": [256]}}', "256 does not fit uint8"),
        (b'{"node_id": 1, "node_type": 0, "node_weight": 1, "edge": [], "binary_feature": {"0": "\\ud800"}}', "half a surrogate"),
        (b"\xff", "expected a JSON value, found 0xff"),
    )  # fmt: skip

    def make(self):
        return JsonDecoder()


class TestStrictJson(TestJson):
    lines = (*TestJson.lines[:3], *TestJson.lines[4:], b'{"node_id": 8, "node_type": 0, "node_weight": 1, "edge": []}')
    bad_lines = (*TestJson.bad_lines, (TestJson.lines[3], "fields 'edge' and 'neighbor' of a record differ"))

    def make(self):
        return JsonDecoder(strict=True, weight_dtype="float64")


class TestEdgeList(DecoderContract):
    lines = (
        b"5,-1,0,1.5,float32,2,1,2.5,binary,1,a b",
        b"7,-1,1,0.5,int8,3/2,1,2,3,4,5,6,-1,2,3,uint64,0,bool,2,true,0",
        b"7,3,5,1e-3,uint64,1,18446744073709551615",
        b"18446744073709551615,-1,0,nan",
        b"5,0,18446744073709551615,1,float64,2/0,3,4,1.5,inf,binary,1,x\\,y",
    )
    bad_lines = (
        (b"5,-1", "node_type"),
        (b"x,-1,0,1", "node_id"),
        (b"-5,-1,0,1", "node_id"),
        (b"5,0,7,1,uint8,1,256", "uint8"),
        (b"5,0,7,1,float32,3,1", ""),
    )

    def make(self):
        return EdgeListDecoder()


class TestTemporalEdgeList(DecoderContract):
    lines = (b"1;-1;5;-1;2 x", b"1;2;7;8;2 x", b"2;-1;0;0;2 x", b"3;-1;0;0;2 x", b"2;3;1;1;2 x")
    bad_lines = ((b"1;-1;x;-1;2 x", "created_at"),)

    def make(self):
        return EdgeListDecoder(
            delimiter=";",
            temporal=True,
            default_node_type=1,
            default_node_weight=0.5,
            default_edge_type=0,
            default_edge_weight=2.0,
            default_node_feature_types="binary",
            default_node_feature_lens="1",
            default_edge_feature_types="binary",
            default_edge_feature_lens="1",
        )


class TestTsv(DecoderContract):
    lines = (
        b"5\t0\t1.5\tf:1 2.5;b:a b;;u8:7\t7,0,0.5,b:x|5,1,2",
        b"7\t1\t0.5",
        b"18446744073709551615\t0\tnan\t\t5,2,1,i16:-1 2",
        b"1\t\t\ti:1 2 3\t",
        b'"2"\t0\t1\t"b:say ""hi"""\t5,0,1',
    )
    bad_lines = ((b"x\t0\t1", "node_id"), (b"1\t0\t1\tu8:256", "uint8"), (b"1\t0\t1\t\t5,0,1|", ""))

    def make(self):
        return TsvDecoder()


class OneFile:
    """The storage that a decoder plans with: one text file."""

    record_bytes = 1 << 28

    def __init__(self, data: bytes):
        self.data = data

    def head(self, url, num_bytes):
        return self.data[:num_bytes]


class EdgesContract(DecoderContract):
    def span(self):
        return self.make().plan(OneFile(self.text), ["input"]).spans[0]


class TestEdges(EdgesContract):
    lines = (b"1 2", b"2 3", b"18446744073709551615 1", b"0 0", b" 5\t1 ")
    bad_lines = ((b"1 x", "'x'"), (b"-1 2", "-1"), (b"1", ""))
    skipped = (b"# comment", b"  % comment")

    def make(self):
        return EdgesDecoder(header="no")


class TestWeightedCsv(EdgesContract):
    lines = (b"1,2,0.5,a,3", b'2,3,nan,"b ""x""",', b"3,4,,c,-5", b"7,7,1e3,,0", b"8,7,inf,d,1")
    bad_lines = ((b"1,2,x,a,3", "'x'"), (b"1,2,1,a", ""), (b"1,2,1,a,1.5", "1.5"), (b'1,2,1,"a,1', ""))
    skipped = (b"# comment",)

    def make(self):
        return EdgesDecoder(header="no", weight_col="2", columns=("col_3=binary", "col_4=int64"))


class Halves:
    """A decoder as people write them for DeepGNN."""

    def decode(self, line):
        src, dst = (int(text) for text in line.split("/"))
        yield src, -1, 0, 1.0, None, None, [None, f"node {src}"]
        yield src, dst, 1, 0.5, 3, None, []


class TestAdapter(DecoderContract):
    lines = (b"1/2", b"2/3", b"0/0", b"9/1", b"3/2")
    bad_lines = ((b"1/x", "Halves failed: ValueError: invalid literal for int()"), (b"-5/1", "must yield src as an integer"))
    at_ids = False

    def make(self):
        return LineDecoderAdapter(Halves())


class _Stateful(JsonDecoder):
    """Violates the contract: rows depend on how the input is split."""

    def decode(self, block, places=False):
        rows = super().decode(block, places)
        return RawRows(rows.nodes, None, num_records=1)


@pytest.mark.parametrize("test", ["test_decodes_its_lines", "test_any_split_gives_the_same_rows"])
def test_contract_catches_a_decoder_that_breaks_it(test):
    class Broken(TestJson):
        def make(self):
            return _Stateful()

    with pytest.raises(AssertionError):
        getattr(Broken(), test)()
