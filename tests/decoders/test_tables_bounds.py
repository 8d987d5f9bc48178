"""The kernels of tables with Numba's bounds checks: they stay inside their arrays, whatever stands in a file."""

import os
import subprocess
import sys
import textwrap

import pytest


@pytest.mark.heavy
def test_kernels_stay_inside_their_arrays(pytestconfig):
    code = textwrap.dedent('''
        import itertools
        from graphprep.decoders.looks.quoted_records import Dialect
        from graphprep.decoders.tables.columns import ColumnType, FeatureColumn, IdField, NodeOwner, TableLayout
        from graphprep.decoders.tables.json import JsonReader
        from graphprep.decoders.tables.text import TextReader
        from graphprep.model.errors import DecodeError
        from graphprep.model.protocols import Span, TextBlock
        texts = [
            b"", b"\\n", b"1", b"1,", b'1,"', b'1,"a', b'1,"a""', b'1,"a"""', b'1,"a\\n', b'"1\\n",2\\n', b'1,"a"b', b"1,[", b"1,[]",
            b"1,[1", b"1,1;", b"1,;", b"1,2020-01-0", b"1,2020-01-01", b"1,2020-01-01T", b"1,2020-01-01T00:00:0", b"1,NA\\nNA,1",
            b"1,\\\\", b'1,"\\\\', b"1,\\\\\\n2", b"1,\\\\\\n", b"1,\\\\\\r\\n", b'1,"\\\\"",', b'1\\\\,2,"3"',
            b"1,2\\\\\\r", b"#\\\\\\n1,2",
            b"1,2020-01-01T00:00:00.1+0", b"1,2020-01-01T00:00:00+01:0", b"1,\\xe2\\x82", b"\\r\\n1,2\\r", b"1,-", b"1,\\t",
        ]
        types = [None, ColumnType("binary"), ColumnType("int64", "day"), ColumnType("int64", "ns"), ColumnType("int8", is_list=True),
                 ColumnType("float32", is_list=True, size=2), ColumnType("bool")]
        lines = [
            b"", b"{}", b'{"id":1}', b'{"id":"', b'{"id":1,"a":[', b'{"id":1,"a":[1,2.5]}', b'{"id":"1","a":"\\\\u00e9"}', b"[1]",
            b'{"id":1,"a":tru', b'{"id":1,"a":"x"}', b'{"id":1,"\\\\u0061":-1}', b'{"a":1e400,"id":2}', b'{"id":1,"a":"\\\\ud800"}',
        ]
        for kind, ids in itertools.product(types, ["uint", "int", "string"]):
            layout = TableLayout(NodeOwner("u"), (IdField("id", 0, ids),), (FeatureColumn("a", "a", 1, kind),), ("id", "a"),
                                 nulls=(b"NA",))
            grammars = [Dialect(mark, bool(mark), bool(mark), b"" if mark else b"#") for mark in (b",", "§".encode(), b"")]
            grammars += [Dialect(b",", quoted, True, b"#", escape=b"\\\\") for quoted in (True, False)]
            for grammar in grammars:
                reader = TextReader(layout, grammar)
                for text in texts:
                    data = text.replace(b",", grammar.delimiter or b" ")
                    if grammar.record_ends:
                        grammar.record_ends.ends(data)
                        grammar.record_ends.scan(data, 0)
                    try:
                        reader.decode(TextBlock(data, Span("x")), places=True)
                    except DecodeError:
                        reader.find_faults(TextBlock(data, Span("x")))
            for line in lines:
                reader, block = JsonReader(layout, frozenset("a")), TextBlock(line + b"\\n" + line, Span("x"))
                try:
                    reader.decode(block, places=True)
                except DecodeError:
                    assert len(reader.find_faults(block)) == 2
        print("inside")
    ''')
    kept = str(pytestconfig.cache.mkdir("numba-boundscheck"))  # compiled code of the usual kind does not check
    environment = dict(os.environ, NUMBA_BOUNDSCHECK="1", NUMBA_OPT="0", NUMBA_CACHE_DIR=kept)
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("inside\n", 0), done.stderr
