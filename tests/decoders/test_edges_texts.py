"""Edge lists with names: string IDs, signed IDs, triples, quotes. Against the csv module and pyarrow; every error whole."""

from __future__ import annotations

import csv
import dataclasses
import io
import itertools
import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import graphprep
from graphprep.decoders.edges.decoder import EdgesDecoder
from graphprep.model.errors import DataError, DecodeError, UsageError
from graphprep.model.protocols import DeclaredNodes, SettlesIds, TextBlock
from graphprep.model.rows import RawTexts, Relation
from graphprep.storage.read.spans import place_of
from graphprep.testing.contract import DecoderContract, mutations

relaxed = settings(deadline=None, max_examples=80)


class Files:
    """Just enough storage: files in a dict."""

    record_bytes = 1 << 28

    def __init__(self, files):
        self.files = files

    def head(self, url, num_bytes):
        return self.files[url][:num_bytes].removeprefix(b"\xef\xbb\xbf")

    def open(self, url):
        return io.BytesIO(self.files[url])


def plan(decoder, *files):
    """Plan files given as their contents; they are called 0.txt, 1.txt …"""
    contents = {f"{i}.txt": data if isinstance(data, bytes) else data.encode() for i, data in enumerate(files)}
    return decoder.plan(Files(contents), list(contents))


def id_list(ids):
    """Write raw IDs as plain values: str of texts, int of uint64."""
    return [ids.text(row) for row in range(ids.size)] if isinstance(ids, RawTexts) else ids.tolist()


def cut(data, size):
    """Cut bytes into blocks of whole lines of about ``size`` bytes: (block, number of its first line)."""
    at, line = 0, 1
    while at < len(data):
        end = data.find(b"\n", min(at + size, len(data)) - 1) + 1 or len(data)
        yield data[at:end], line
        line += data.count(b"\n", at, end)
        at = end


def edges_of(batches):
    """Return (source, relation, destination) of every edge, in order."""
    found = []
    for batch in batches:
        edges = batch.edges
        names = [relation.name for relation in edges.relation_names]
        assert len(set(names)) == len(names)
        assert edges.relations.dtype == np.int32
        found += zip(id_list(edges.src), [names[code] for code in edges.relations], id_list(edges.dst), strict=True)
    return found


def decode(decoder, text, size=1 << 20):
    data = text if isinstance(text, bytes) else text.encode()
    span = plan(decoder, data).spans[0]
    return edges_of(decoder.decode(TextBlock(part, span, line, line == 1)) for part, line in cut(data, size))


def parquet(table, row_group_size=3):
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=row_group_size)
    return sink.getvalue()


def read(decoder, table, max_rows=2):
    data = parquet(table)
    (span,) = decoder.plan(Files({"e.parquet": data}), ["e.parquet"]).spans
    return edges_of(decoder.read(io.BytesIO(data), span, max_rows))


# ------------------------------------------------------------------------------------------ the contract


class OneFile:
    record_bytes = 1 << 28

    def __init__(self, data):
        self.data = data

    def head(self, url, num_bytes):
        return self.data[:num_bytes]


class EdgesContract(DecoderContract):
    skipped = (b"# comment", b"  % comment")

    def span(self):
        return self.make().plan(OneFile(self.text), ["input"]).spans[0]


class TestNames(EdgesContract):
    lines = (b"alice bob", b"bob\t12", b"  \xc3\xa9\xe2\x98\x83 alice  ", b'"x x"', b"a,b 007")
    bad_lines = ((b"alice", "expected 2 columns, found 1"), (b"\xff b", "is not UTF-8"))

    def make(self):
        return EdgesDecoder(id_type="string", delimiter=" ")


class TestQuotedTriples(EdgesContract):
    lines = (b"a,likes,b,1", b'"a ""x""",knows,"b,c",', b" a,likes , a ,-5", b'"#h","%",b,0', b"12,1,a,7")
    bad_lines = (
        (b",likes,b,1", "field 'src' is empty"),
        (b"a, ,b,1", "field 'relation' is empty"),
        (b'a,likes,"",1', "field 'dst' is empty"),
        (b"a,\xc3,b,1", "field 'relation' is not UTF-8"),
        (b'a,likes,"b,1', "a quote does not close"),
        (b'a,li"kes,b,1', "a quote inside an unquoted field"),
        (b"a,likes,b,x", "field 'col_3' must be an integer"),
    )

    def make(self):
        return EdgesDecoder(id_type="string", relation_col="1", relation="p:_:q", columns=("col_3=int64",))


class TestSigned(EdgesContract):
    lines = (b"-1 2", b"+3 -9223372036854775808", b"9223372036854775807 -0", b"0 1", b"7 -7")
    bad_lines = ((b"1.0 2", "must be an integer"), (b"1 9223372036854775808", "must be from -2^63"), (b"x 1", "found 'x'"))
    at_ids = False  # IDs are the bits of int64

    def make(self):
        return EdgesDecoder(id_type="int", header="no")


class TestAuto(TestNames):
    def make(self):
        return EdgesDecoder(id_type="auto", delimiter=" ")


# ------------------------------------------------------------------------------------------ text


letters = st.characters(exclude_characters="\n\r", exclude_categories=["Cs", "Cc"])
names = st.text(letters, min_size=1, max_size=9).filter(lambda name: name.strip(" \t"))
awkward = st.sampled_from(
    ["a", "A", "é", "e\u0301", "0", "00", "-0", "1", " a", "a ", '"', '""', 'a"b', "a,b", "\ufeff", "a\u2028b"]
)
keys = awkward | names


def written(rows, delimiter, quoting):
    """Write rows as csv.writer does; lines that would be comments or blank are quoted."""
    out = io.StringIO()
    for row in rows:
        must = row[0].lstrip(" \t")[:1] in ("#", "%", "\ufeff")
        csv.writer(out, delimiter=delimiter, lineterminator="\n", quoting=csv.QUOTE_ALL if must else quoting).writerow(row)
    return out.getvalue()


@relaxed
@given(
    rows=st.lists(st.tuples(keys, keys, keys), min_size=1, max_size=12),
    delimiter=st.sampled_from([",", "\t", ";", "|"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    size=st.integers(1, 60),
    ends=st.sampled_from(["\n", "\r\n"]),
)
def test_csv_reads_back_what_the_csv_module_wrote(rows, delimiter, quoting, size, ends):
    text = written(rows, delimiter, quoting)
    assert [tuple(row) for row in csv.reader(io.StringIO(text), delimiter=delimiter, strict=True)] == rows
    decoder = EdgesDecoder(id_type="string", delimiter=delimiter, relation_col="1", header="no")
    assert decode(decoder, text.replace("\n", ends), size) == rows


@relaxed
@given(rows=st.lists(st.tuples(names, names), min_size=1, max_size=12), size=st.integers(1, 60))
def test_without_quotes_every_character_counts(rows, size):
    rows = [(src.replace("\t", " "), dst.replace("\t", " ")) for src, dst in rows]
    rows = [row for row in rows if row[0].lstrip()[:1] not in ("#", "%", "\ufeff")] or [("a", "b")]
    text = "".join(f"{src}\t{dst}\n" for src, dst in rows)
    decoder = EdgesDecoder(id_type="string", delimiter="\t", quote=False, header="no")
    assert decode(decoder, text, size) == [(src, "_E", dst) for src, dst in rows]


@relaxed
@given(ids=st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9), min_size=2, max_size=20), size=st.integers(1, 60))
def test_signed_ids_are_the_bits_of_int64(ids, size):
    text = "".join(f"{a} {b}\n" for a, b in itertools.pairwise(ids))
    found = decode(EdgesDecoder(id_type="int", header="no"), text, size)
    bits = np.array(ids, np.int64).view(np.uint64).tolist()
    assert [(src, dst) for src, _, dst in found] == list(itertools.pairwise(bits))


def test_blanks_separate_names():
    assert decode(EdgesDecoder(id_type="string"), " a   b \nb\tc\n") == [("a", "_E", "b"), ("b", "_E", "c")]


def test_names_are_kept_as_they_are_written():
    text = "a, b\na,b\nA,007\n7,+7\n"
    assert [(src, dst) for src, _, dst in decode(EdgesDecoder(id_type="string"), text)] == [
        ("a", " b"),
        ("a", "b"),
        ("A", "007"),
        ("7", "+7"),
    ]


def test_places_are_those_of_the_names():
    data = b'"a ""b""",c\nd,"e"\n'
    decoder = EdgesDecoder(id_type="string")
    edges = decoder.decode(TextBlock(data, plan(decoder, data).spans[0]), places=True).edges
    assert (edges.at_src.tolist(), edges.at_dst.tolist(), edges.record.tolist()) == ([1, 12], [10, 15], [-1, -1])


def test_mutated_bytes_raise_only_decode_errors():
    text = b'a,likes,"b ""c""",1\n"d,e",knows,f,\n\xc3\xa9,likes,a,x\n'
    decoder = EdgesDecoder(id_type="string", relation_col="1", delimiter=",")
    span = plan(decoder, text).spans[0]
    for data in mutations(text, 400):
        try:
            decoder.decode(TextBlock(data, span), places=True)
        except DecodeError as error:
            assert 0 <= error.at <= len(data)


# ------------------------------------------------------------------------------------------ relations


def test_relations_join_the_declared_types():
    sources = plan(EdgesDecoder(relation_col="1", relation="user:any:item"), "1\tlikes\t2\n")
    assert sources.edge_types == ()
    assert sources.node_types == (DeclaredNodes("user"), DeclaredNodes("item"))
    decoder = EdgesDecoder(relation_col="1", relation="user:any:item")
    edges = decoder.decode(TextBlock(b"1\tlikes\t2\n3\t7\t4\n", sources.spans[0])).edges
    assert edges.relation_names == (Relation("likes", "user", "item"), Relation("7", "user", "item"))
    assert (edges.src.tolist(), edges.dst.tolist(), edges.relations.tolist()) == ([1, 3], [2, 4], [0, 1])


@pytest.mark.parametrize(
    ("options", "ends"),
    [
        ({"relation_col": "0"}, ("b", "a", "c")),
        ({"relation_col": "1"}, ("a", "b", "c")),
        ({"relation_col": "2"}, ("a", "c", "b")),
        ({"relation_col": "1", "src_col": "2", "dst_col": "0"}, ("c", "b", "a")),
    ],
)
def test_the_ends_are_the_first_columns_beside_the_relation(options, ends):
    assert decode(EdgesDecoder(id_type="string", **options), "a b c\n") == [ends]


# ------------------------------------------------------------------------------------------ auto, headers, plans


def test_auto_decodes_texts_until_it_is_told():
    decoder = EdgesDecoder(id_type="auto", relation="user:likes:item")
    assert isinstance(decoder, SettlesIds)
    before = plan(decoder, "1 a\n-2 b\n")
    assert (before.auto_ids, before.signed_ids) == (("user", "item"), ())
    assert decode(decoder, "1 a\n-2 b\n") == [("1", "likes", "a"), ("-2", "likes", "b")]
    settled = pickle.loads(pickle.dumps(decoder.settle_ids(["user"]))).widen({})
    after = plan(settled, "1 a\n-2 b\n")
    assert after == dataclasses.replace(before, auto_ids=("item",), signed_ids=("user",))
    assert decode(settled, "1 a\n-2 b\n") == [(1, "likes", "a"), (2**64 - 2, "likes", "b")]


def test_settled_is_no_option():
    with pytest.raises(TypeError, match="settled"):
        EdgesDecoder(settled=("user",))


AS_EDGE = "0.txt:1: read as an edge; where this line names the columns, pass --header yes"
HEADERS = [
    # names of the ends, or columns called like IDs: sure
    ("Source,Target,Weight\nann,bob,3\n", True, ""),
    ("src dst\nann bob\n", True, ""),
    ("from_id,to_id,amount,date\nann,bob,3,2024-05-01\n", True, ""),
    ("FromNodeId\tToNodeId\nann\tbob\n", True, ""),
    ("user_id,item\nann,hat\n", True, ""),
    ("id ego\nego superego\n", False, AS_EDGE),
    ("id mind\nego body\n", True, "id, mind"),
    ("some id,name\nann,bob\n", False, AS_EDGE),
    # words that headers have, above names: a guess; above numbers, too: sure
    ("from,to\nann,bob\n", True, "from, to"),
    ("user,item\nann,hat\nbob,hat\n", True, "user, item"),
    ("id1,id2\nann,bob\n", True, "id1, id2"),
    ("head tail\nann bob\n", True, "head, tail"),
    ("from,to\n1,2\n", True, ""),
    ("user,item,stars\nann,hat,4.5\n", True, ""),
    # a word above numbers
    ("giver,taker,amount\nann,bob,3\nbob,cy,4\n", True, "giver, taker, amount"),
    ("a,b\n1,2\n", True, "a, b"),
    # data: a number in the first line, a name or a spelling that comes again, two fields that are the same, nothing at all
    ("ann,bob,3\nann,cy,4\n", False, ""),
    ("ann bob\nbob cy\n", False, ""),
    ("node1 node2\nnode3 node4\n", False, AS_EDGE),
    ("p1 q1\np2 q2\n", False, ""),
    ("ann ann\nbob cy\n", False, ""),
    ("ann bob\ncy dan\n", False, AS_EDGE),
    ("ann,bob,NA\ncy,dan,3\n", False, AS_EDGE),
    ("ann,bob,none yet\nann,dan,3\n", False, AS_EDGE),
    ("from to\nto from\n", False, AS_EDGE),
    ("Node 2019\n7 8\n", False, AS_EDGE),
]


@pytest.mark.parametrize("id_type", ["string", "auto"])
@pytest.mark.parametrize(("text", "is_header", "said"), HEADERS)
def test_headers_above_names(text, is_header, said, id_type):
    sources = plan(EdgesDecoder(id_type=id_type), text)
    assert (sources.spans[0].detail.header_line == 1) == is_header
    if is_header and said:
        said = f"0.txt:1: read as a header ({said}); where this line is data, pass --header no"
    assert sources.messages == ((said,) if said else ())
    for header in ("yes", "no"):
        assert plan(EdgesDecoder(id_type=id_type, header=header), text).messages == ()


def test_the_last_line_of_a_files_beginning_is_no_evidence():
    """The head ends within a line whose cells are cut off."""
    text = "ann,bob,x\n" + "cy,dan,3\n" * 9000
    assert len(text) > 1 << 16
    assert plan(EdgesDecoder(id_type="string"), text).messages[0].startswith("0.txt:1: read as a header (ann, bob, x)")


def test_later_files_have_the_first_ones_header_or_none():
    texts = ("from,to\nann,bob\n", "from,to\ncy,dan\n", "eve,fay\n")
    sources = plan(EdgesDecoder(id_type="string"), *texts)
    assert [span.detail.header_line for span in sources.spans] == [1, 1, 0]
    assert sources.messages == ("0.txt:1: read as a header (from, to); where this line is data, pass --header no",)


def test_a_file_that_has_no_header_speaks_for_the_others():
    sources = plan(EdgesDecoder(id_type="string"), "dan eve\n", "ann bob\nbob cy\n")
    assert sources.messages == ()
    assert [span.detail.header_line for span in sources.spans] == [0, 0]


def test_a_header_alone_is_said():
    assert plan(EdgesDecoder(), "ann bob\n").messages == (
        "0.txt:1: read as a header (ann, bob); where this line is data, pass --header no",
    )
    assert plan(EdgesDecoder(), "src dst\n").messages == ()


@pytest.mark.parametrize(
    ("header", "ends"),
    [
        ("id,from,to,amount", ["from", "to"]),
        ("Id,Source,Target", ["Source", "Target"]),
        ("w,FromNodeId,ToNodeId", ["FromNodeId", "ToNodeId"]),
        ("key,dst_id,src_id", ["src_id", "dst_id"]),
        ("user_id,item_id,from,to", ["user_id", "item_id"]),
        ("user,item,from,to", ["user", "item"]),
        ("a,b,c", ["a", "b"]),
    ],
)
def test_ends_are_the_columns_that_are_called_so(header, ends):
    names = header.split(",")
    layout = plan(EdgesDecoder(header="yes"), f"{header}\n{','.join(str(i) for i in range(len(names)))}\n").spans[0].detail
    assert [names[layout.src], names[layout.dst]] == ends


def test_a_column_named_by_name_implies_a_header():
    text = "rel,left,right\nlikes,alice,bob\n"
    decoder = EdgesDecoder(id_type="string", relation_col="rel")
    assert decode(decoder, text) == [("alice", "likes", "bob")]
    assert plan(decoder, text).messages == ()
    assert decode(EdgesDecoder(id_type="string", src_col="col_1", dst_col="2"), text)[0] == ("left", "_E", "right")


@pytest.mark.parametrize("id_type", [None, "int", "string", "auto"])
def test_a_header_that_names_the_ends(id_type):
    expected = [(1, "_E", 2), (2, "_E", 3)] if id_type in (None, "int") else [("1", "_E", "2"), ("2", "_E", "3")]
    decoder = EdgesDecoder(id_type=id_type)
    for text in (
        "id,src,dst\n7,1,2\n8,2,3\n",
        "key, source ,target\n7,1,2\n8,2,3\n",
        '# x\n"src",dst\n1,2\n2,3\n',
        "target\tsource\n2\t1\n3\t2\n",
    ):
        assert plan(decoder, text).messages == ()
        assert decode(decoder, text) == expected
    by_position = EdgesDecoder(id_type=id_type, src_col="0", dst_col="1")
    assert decode(by_position, "dst,src\n1,2\n2,3\n") == expected
    assert decode(EdgesDecoder(id_type="string", header="no"), "src,dst\n") == [("src", "_E", "dst")]


TRIPLE_TIP = "name the character between the columns with --delimiter, or the format with --format"
BASE_TIP = "leave it out: string IDs are stored as they are written"


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            lambda: EdgesDecoder(id_type="text"),
            "--id-type: no choice named 'text'\n  fix: use one of int, uint, string, auto",
        ),
        (lambda: EdgesDecoder(id_type="string", index_base=1), f"--index-base is for integer IDs\n  fix: {BASE_TIP}"),
        (
            lambda: EdgesDecoder(relation_col="1", relation="likes"),
            "--relation likes names the relation of all edges, but --relation-col that of each\n  fix: leave out one of them; "
            "--relation SRC:REL:DST beside --relation-col gives the types of the ends, and --relation-as column makes a column of that",
        ),
        (
            lambda: plan(EdgesDecoder(id_type="string", quote=True), "a b\n"),
            "--quote needs a delimiter of one character, but blanks separate the columns of 0.txt\n  fix: give one with "
            "--delimiter, or leave --quote out",
        ),
        (
            lambda: plan(EdgesDecoder(id_type="string", quote=True, delimiter="::"), "a::b\n"),
            "--quote needs a delimiter of one character, but '::' separates the columns of 0.txt\n  fix: give one with "
            "--delimiter, or leave --quote out",
        ),
        (
            lambda: plan(EdgesDecoder(id_type="string", relation_col="1"), "a b\n"),
            f"0.txt:1:1: 2 columns; an edge with a relation needs three\n  fix: {TRIPLE_TIP}",
        ),
        (
            lambda: plan(EdgesDecoder(relation_col="0", src_col="0"), "a b c\n"),
            "--src-col 0: this column of 0.txt is the relation already\n  fix: use each column once; without flags, column 0 is "
            "the source and column 1 the destination",
        ),
    ],
)
def test_wrong_options(make, text):
    with pytest.raises((UsageError, DataError)) as caught:
        make()
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("text", "options", "message", "place", "fix"),
    [
        (
            "1 2\n3 alice\n",
            {},
            "field 'dst' must be an integer, found 'alice'",
            "2:3",
            "write IDs as decimal digits, or declare string IDs with --id-type string",
        ),
        ("1 2\n3 x\n", {"id_type": "uint"}, "field 'dst' must be an integer, found 'x'", "2:3", None),
        ("1 2\n3 x\n", {"id_type": "int"}, "field 'dst' must be an integer, found 'x'", "2:3", None),
        (
            "1 -2\n",
            {"id_type": "uint"},
            "field 'dst' must not be negative, found '-2'",
            "1:3",
            "give every node an ID of 0 or more, or declare signed IDs with --id-type int",
        ),
        (
            "9223372036854775808 0\n",
            {"id_type": "int"},
            "field 'src' must be from -2^63 to 2^63-1, found '9223372036854775808'",
            "1:1",
            "declare IDs from 0 to 2^64-1 with --id-type uint, or declare string IDs with --id-type string",
        ),
        (
            "5 0\n",
            {"id_type": "int", "index_base": 1},
            "field 'dst' must be at least 1, found '0'",
            "1:3",
            "leave out --index-base where IDs count from 0",
        ),
        ("a,\n", {"id_type": "string"}, "field 'dst' is empty", "1:3", "give every edge a source and a destination"),
        ('a,b\nc," "\n', {"id_type": "string"}, "field 'dst' is empty", "2:4", "give every edge a source and a destination"),
        (
            b"a,b\nc,\xe9\n",
            {"id_type": "string"},
            "field 'dst' is not UTF-8, found '\ufffd'",
            "2:3",
            "convert the file to UTF-8",
        ),
        (
            "a,r,b\na,,b\n",
            {"id_type": "string", "relation_col": "1"},
            "field 'relation' is empty",
            "2:3",
            "give every edge a relation, or leave out --relation-col",
        ),
        (
            b"a,r,b\na,\xe9,b\n",
            {"id_type": "string", "relation_col": "1"},
            "field 'relation' is not UTF-8, found '\ufffd'",
            "2:3",
            "convert the file to UTF-8",
        ),
        ("a,b\n,b\nc,\xff,d\n", {"id_type": "string"}, "field 'src' is empty", "2:1", None),
    ],
)
def test_faulty_records(text, options, message, place, fix):
    data = text if isinstance(text, bytes) else text.encode()
    decoder = EdgesDecoder(**{"header": "no", **options})
    block = TextBlock(data, plan(decoder, data).spans[0])
    with pytest.raises(DecodeError) as caught:
        decoder.decode(block)
    assert caught.value.message == message
    assert place_of(block, caught.value.at) == f"0.txt:{place}"
    assert fix is None or caught.value.fix == fix


HEADERS = [
    ({"id_type": "string"}, "src,dst", ["ann,bob", "src,dst2", "src,dsT", "srd,dst", "dst,src", "x src,dst", "b,c"]),
    ({"id_type": "auto"}, "source\ttarget\tnote", ["source\ttarget\tnot", "source\ttarget\tnotes", "a\tb\t"]),
    ({"id_type": "string", "header": "yes"}, "p q", ["p q ", " p q", "p  q", "q p", "a b"]),
    ({"id_type": "string", "weight_col": "w"}, '"from",w,"to"', ["a,1,b", '"from",2,"to"', "from,3,to"]),
    ({"id_type": "string", "quote": True}, "text,src,dst", ['"a\ntext,src,dst\n",ann,bob', ",ann,eve"]),
    ({"id_type": "auto", "relation_col": "1"}, "head\trelation\ttail", ["head\trelation\ttai", "a\tr\tb", "head\tr\ttail"]),
]


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize(("options", "header", "edges"), HEADERS)
def test_the_header_again_is_no_edge(options, header, edges, line_end):
    decoder = EdgesDecoder(**options)
    clean = "".join(f"{line}{line_end}" for line in [header, *edges])
    wanted = decode(decoder, clean)
    assert len(wanted) == len(edges)
    for behind in range(1, len(edges) + 1):
        for data in ([header, *edges[:behind], header, *edges[behind:]], [header, *edges[:behind], header]):
            text = line_end.join(data).encode()
            block = TextBlock(text, plan(decoder, text).spans[0])
            with pytest.raises(DecodeError) as caught:
                decoder.decode(block)
            assert caught.value.message == "the header of the file stands here again"
            line = sum(edge.count("\n") for edge in edges[:behind]) + behind + 2
            assert place_of(block, caught.value.at) == f"0.txt:{line}:1"
            assert "--on-error skip" in caught.value.fix
            assert [fault.at for fault in decoder.find_faults(block)] == [caught.value.at]


def test_the_header_again_is_skipped(tmp_path):
    (tmp_path / "two.csv").write_text("src,dst\na,b\nsrc,dst\nsrc,dst\nb,c\n")
    for name, edge in (("a.csv", "a,b"), ("b.csv", "b,c")):
        (tmp_path / name).write_text(f"src,dst\n{edge}\n")
    options = {"format": "edges", "decoder_options": {"id_type": "string"}}
    skipped = graphprep.convert(tmp_path / "two.csv", tmp_path / "two", on_error="skip", **options)
    assert skipped.num_skipped == 2
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    graphprep.convert(files, tmp_path / "apart", **options)
    found = [graphprep.load(tmp_path / name).edges() for name in ("two", "apart")]
    assert [[ends.tolist() for ends in edges[:2]] for edges in found] == [[[0, 1], [1, 2]]] * 2


def test_a_first_line_of_data_may_stand_again():
    assert decode(EdgesDecoder(id_type="string", header="no"), "src,dst\na,b\nsrc,dst\n") == [
        ("src", "_E", "dst"),
        ("a", "_E", "b"),
        ("src", "_E", "dst"),
    ]


# ------------------------------------------------------------------------------------------ Parquet


TEXTS = ["b", "", "a", "é", " x", "0", "007", "b"]
KINDS = [pa.string(), pa.large_string(), pa.binary(), pa.dictionary(pa.int8(), pa.string())]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("id_type", [None, "string", "auto"])
def test_string_columns_are_string_ids(kind, id_type):
    texts = [text or "z" for text in TEXTS]
    values = [text.encode() for text in texts] if kind == pa.binary() else texts
    table = pa.table({"s": pa.array(values, kind), "d": pa.array(values[::-1], kind)})
    assert read(EdgesDecoder(id_type=id_type), table) == [(a, "_E", b) for a, b in zip(texts, texts[::-1], strict=True)]


@relaxed
@given(rows=st.lists(st.tuples(keys, keys, keys), min_size=1, max_size=9), max_rows=st.integers(1, 4))
@example([("a", "r", "b")], 1)
def test_string_tables_agree_with_pyarrow(rows, max_rows):
    columns = list(zip(*rows, strict=True))
    table = pa.table({"h": columns[0], "r": columns[1], "t": columns[2]})
    assert read(EdgesDecoder(relation_col="r"), table, max_rows) == rows


def test_integer_columns():
    table = pa.table({"s": pa.array([1, -2, 3], pa.int64()), "d": pa.array([4, 5, 6], pa.uint8()), "r": [1, 20, 1]})
    options = {"relation_col": "r"}
    assert read(EdgesDecoder(id_type="int", **options), table) == [(1, "1", 4), (2**64 - 2, "20", 5), (3, "1", 6)]
    assert read(EdgesDecoder(id_type="string", **options), table) == [("1", "1", "4"), ("-2", "20", "5"), ("3", "1", "6")]
    assert read(EdgesDecoder(id_type="auto", **options), table) == [(1, "1", 4), (2**64 - 2, "20", 5), (3, "1", 6)]
    sources = plan(EdgesDecoder(id_type="auto", **options), parquet(table))
    assert (sources.auto_ids, sources.signed_ids) == ((), ("_N",))


def test_texts_of_digits_as_integers():
    table = pa.table({"s": ["1", "-2"], "d": ["+4", " 5"]})
    assert read(EdgesDecoder(id_type="int"), table) == [(1, "_E", 4), (2**64 - 2, "_E", 5)]
    assert read(EdgesDecoder(id_type="auto").settle_ids(["_N"]), table) == [(1, "_E", 4), (2**64 - 2, "_E", 5)]


def test_auto_over_columns_and_text():
    """A node type's IDs are integers only where every file holds them so."""
    table = parquet(pa.table({"s": [1, 2], "d": [3, 4]}))
    decoder = EdgesDecoder(id_type="auto")
    sources = plan(decoder, table, "a b\n")
    assert sources.auto_ids == ("_N",)
    assert edges_of(decoder.read(io.BytesIO(table), sources.spans[0], 9)) == [("1", "_E", "3"), ("2", "_E", "4")]


def test_empty_files_hold_nothing():
    decoder = EdgesDecoder()
    sources = plan(decoder, "# nothing\n", parquet(pa.table({"s": ["a"], "d": ["b"]})))
    assert edges_of([decoder.decode(TextBlock(b"# nothing\n", sources.spans[0]))]) == []
    assert isinstance(decoder.decode(TextBlock(b"", sources.spans[0])).edges.src, RawTexts)


STRINGS = pa.table({"s": ["a"], "d": ["b"]})
NUMBERS = pa.table({"s": [1], "d": [2]})
MIXED = "read all of them as strings with --id-type string, or as integers with --id-type uint"


@pytest.mark.parametrize(
    ("files", "options", "text"),
    [
        (
            (STRINGS, NUMBERS),
            {},
            f"0.txt: the sources: IDs of node type '_N' are strings, but integers in 1.txt: the sources\n  fix: {MIXED}",
        ),
        (
            (STRINGS, "1 2\n"),
            {"relation": "u:r:v"},
            f"0.txt: the sources: IDs of node type 'u' are strings, but integers in 1.txt:1:1: the sources\n  fix: {MIXED}",
        ),
        (
            (pa.table({"s": [1], "d": ["b"]}),),
            {},
            f"0.txt: the destinations: IDs of node type '_N' are strings, but integers in 0.txt: the sources\n  fix: {MIXED}",
        ),
        ((STRINGS,), {"index_base": 1}, f"--index-base is for integer IDs\n  fix: {BASE_TIP}"),
        (
            (pa.table({"s": [1], "r": [1.5], "d": [2]}),),
            {"relation_col": "r"},
            "0.txt: column 'r': relations must be strings or integers, found double\n  fix: cast it to string",
        ),
        (
            (pa.table({"s": pa.nulls(1), "d": [2]}),),
            {},
            "0.txt: column 's': IDs must be integers or strings, found null\n  fix: cast it to int64, uint64 or string",
        ),
    ],
)
def test_faulty_files(files, options, text):
    contents = [parquet(file) if isinstance(file, pa.Table) else file for file in files]
    with pytest.raises((DataError, UsageError)) as caught:
        plan(EdgesDecoder(**options), *contents)
    assert str(caught.value) == text


def test_two_types_may_differ():
    table = pa.table({"s": [1, 2], "d": ["a", "b"]})
    assert read(EdgesDecoder(relation="u:r:v"), table) == [(1, "r", "a"), (2, "r", "b")]


@pytest.mark.parametrize(
    ("table", "options", "at", "column", "text"),
    [
        ({"s": ["a", None], "d": ["b", "c"]}, {}, 1, "s", "field 'src' is empty"),
        ({"s": ["a", "b", "c"], "d": ["b", "c", " "]}, {}, 2, "d", "field 'dst' is empty"),
        ({"s": [1, 2], "d": [3, None]}, {"id_type": "string"}, 1, "d", "field 'dst' is empty"),
        ({"s": [1, 2], "d": [3, -1]}, {}, 1, "d", "field 'dst' must not be negative, found -1"),
        ({"s": ["1", "x"], "d": ["2", "3"]}, {"id_type": "int"}, 1, "s", "field 'src' must be an integer, found 'x'"),
        ({"s": ["1", "-3"], "d": ["2", "3"]}, {"id_type": "uint"}, 1, "s", "field 'src' must not be negative, found '-3'"),
        ({"s": ["a", "b"], "d": ["b", "c"], "r": ["x", None]}, {"relation_col": "r"}, 1, "r", "field 'relation' is empty"),
        (
            {"s": pa.array([1, 2**63], pa.uint64()), "d": [0, 0]},
            {"id_type": "int"},
            1,
            "s",
            "field 'src' must be from -2^63 to 2^63-1, found 9223372036854775808",
        ),
        ({"s": [b"a", b"\xff"], "d": [b"b", b"c"]}, {}, 1, "s", "field 'src' is not UTF-8, found '\ufffd'"),
    ],
)
def test_faulty_rows(table, options, at, column, text):
    data = parquet(pa.table(table))
    decoder = EdgesDecoder(**options)
    (span,) = decoder.plan(Files({"e.parquet": data}), ["e.parquet"]).spans
    with pytest.raises(DecodeError) as caught:
        list(decoder.read(io.BytesIO(data), span, 9))
    error = caught.value
    assert (error.at, error.column, error.message) == (at, column, text)


# ------------------------------------------------------------------------------------------ real files


def test_alphabet(real_samples):
    data = (real_samples / "text_dialects/alphabet.edgelist").read_bytes()
    rows = [line.split("\t") for line in data.decode().splitlines() if not line.startswith("#")]
    assert decode(EdgesDecoder(id_type="string", weight_col="2"), data, 5) == [(row[0], "_E", row[1]) for row in rows]


@pytest.mark.parametrize("name", ["train", "valid", "test"])
def test_umls(real_samples, name):
    data = (real_samples / f"kg_small/umls/{name}.txt").read_bytes()
    rows = [tuple(line.split("\t")) for line in data.decode().splitlines()]
    for size in (100, 1 << 20):
        assert decode(EdgesDecoder(id_type="string", relation_col="1"), data, size) == rows


def test_bitcoin_otc(real_samples):
    """Integers under auto, as texts and settled."""
    data = (real_samples / "bitcoin_otc/edges.csv").read_bytes()
    rows = [(row[0], row[1]) for row in csv.reader(data.decode().splitlines())]
    decoder = EdgesDecoder(id_type="auto", weight_col="2", drop_columns=("3",))
    assert [(src, dst) for src, _, dst in decode(decoder, data)] == rows
    found = decode(decoder.settle_ids(["_N"]), data)
    assert [(src, dst) for src, _, dst in found] == [(int(a), int(b)) for a, b in rows]


# ------------------------------------------------------------------------------------------ quotes while the delimiter is found


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ('"7\t007",x\n', ("7\t007", "x")),
        ('"a,b"\t"c,d"\n', ("a,b", "c,d")),
        ('"a ""b, c""",d\n', ('a "b, c"', "d")),
        ('"src,1"\tdst\n"a,b"\tc\n', ("a,b", "c")),
    ],
)
def test_delimiters_in_quotes_do_not_count(text, row):
    header = "yes" if "src" in text else "no"
    decoder = EdgesDecoder(id_type="string", header=header, src_col="0", dst_col="1")
    assert [(src, dst) for src, _, dst in decode(decoder, text)] == [row]


@pytest.mark.parametrize(
    ("text", "place", "found"),
    [
        ('"7\t007"\n', "1:1", '"7\t007"'),
        ('"7\t007" x\n', "1:1", '"7\t007"'),
        ('ann  "bob ray"\n', "1:6", '"bob ray"'),
        ('ann bob\ncy "dan"\n', "2:4", '"dan"'),
    ],
)
def test_quotes_where_blanks_are_found_to_separate(text, place, found):
    fix, shown = (
        "write tabs or commas between the columns, or take quotes as they are with --no-quote",
        found.replace("\t", r"\t"),
    )
    with pytest.raises(DataError) as caught:
        plan(EdgesDecoder(id_type="string", header="no"), text)
    assert str(caught.value) == f"0.txt:{place}: blanks separate the columns, but this field is quoted: {shown}\n  fix: {fix}"
    rows = [tuple(line.split()) for line in text.splitlines()]
    if len({len(row) for row in rows}) == 1 and len(rows[0]) == 2:
        for options in ({"quote": False}, {"delimiter": " "}):
            assert [(a, b) for a, _, b in decode(EdgesDecoder(id_type="string", header="no", **options), text)] == rows


def test_quotes_inside_of_words_are_letters_where_blanks_separate():
    assert decode(EdgesDecoder(id_type="string", header="no"), '5" 6"\n') == [('5"', "_E", '6"')]


def test_a_guess_is_in_the_summary_where_nobody_is_told(tmp_path):
    path = tmp_path / "e.csv"
    path.write_text("from,to\nann,bob\n")
    summary = graphprep.convert(str(path), str(tmp_path / "out"), format="edges", decoder_options={"id_type": "string"})
    assert (
        summary.notes[0]
        == f'{path}:1: read as a header (from, to); where this line is data, pass decoder_options["header"]="no"'
    )

    texts = []

    class Told:
        def stage(self, name, *, total_bytes=None, total_records=None): ...
        def advance(self, *, records=0, num_bytes=0): ...
        def message(self, text):
            texts.append(text)

    options = {"format": "edges", "decoder_options": {"id_type": "string"}}
    summary = graphprep.convert(str(path), str(tmp_path / "other"), reporter=Told(), **options)
    assert any("read as a header" in text for text in texts)
    assert not any("header" in note for note in summary.notes)


AS_TRIPLES = (
    "0.txt:1: read as an edge from column 0 to column 1, and column 2 as its text; "
    "where column 1 names relations, as 'likes' may, pass --format triples"
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a\tlikes\tb\nb\tlikes\tc\nc\tknows\ta\n", AS_TRIPLES),
        ("a likes b\nb likes c\n", AS_TRIPLES),
        ("a b likes\nb c likes\nc a knows\n", ""),  # the last column repeats
        ("a b x\na c y\nb c z\n", ""),  # a node of the second column has edges of its own
        ("a likes 3\nb likes 4\n", ""),  # no name: a weight, say
        ("a likes b c\nb likes c d\n", ""),
        ("a likes b\n", ""),
    ],
)
def test_what_looks_like_triples_is_told(text, said):
    wanted = (said,) if said else ()
    assert plan(EdgesDecoder(id_type="string", header="no"), text).messages == wanted
    assert plan(EdgesDecoder(id_type="auto", header="no"), text).messages == wanted
    assert plan(EdgesDecoder(id_type="string", header="no", src_col="0", dst_col="2"), text).messages == ()
    assert plan(EdgesDecoder(id_type="string", header="no", relation_col="1"), text).messages == ()
