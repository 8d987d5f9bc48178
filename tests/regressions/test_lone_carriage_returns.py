"""Lines that end with CR alone were one line, and so a header without edges."""

from __future__ import annotations

import pytest

from graphprep.convert.pipeline import convert
from graphprep.model.errors import DataError
from graphprep.model.graph_config import EdgeTable, GraphConfig, TableConfig
from graphprep.model.options.convert import ConvertOptions


@pytest.mark.parametrize("kind", ["edges", "triples", "tables"])
def test_lines_that_end_with_cr_alone_are_told(tmp_path, kind):
    path = tmp_path / "edges.csv"
    path.write_bytes(b"src,rel,dst\r1,a,2\r2,a,1\r")
    out = str(tmp_path / "out")
    with pytest.raises(DataError) as caught:
        if kind == "tables":
            table = EdgeTable("n", "to", "n", TableConfig((str(path),)))
            convert([], out, ConvertOptions(graph=GraphConfig(edges=(table,))))
        else:
            convert([str(path)], out, ConvertOptions(format=kind))
    assert (
        str(caught.value) == f"{path}:1:12: lines end with CR alone\n  fix: write LF or CR LF; tr '\\r' '\\n' repairs the file"
    )


def test_a_quoted_cr_is_no_line_end(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_bytes(b'"a\rb",c')
    summary = convert([str(path)], str(tmp_path / "out"), ConvertOptions(format="edges", decoder_options={"id_type": "string"}))
    assert dict(summary.num_nodes) == {"_N": 2}
