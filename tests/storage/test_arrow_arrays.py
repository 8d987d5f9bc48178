"""Arrays made of buffers are those of pyarrow, and pandas is not asked for."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from graphprep.storage.read.arrow_arrays import arrow_array, arrow_null, arrow_text

DTYPES = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 1000])
@pytest.mark.parametrize("step", [1, -1, 3])
def test_numbers(dtype, size, step):
    values = (np.random.default_rng(size).integers(0, 100, size * 3) % (2 if dtype == "bool" else 101)).astype(dtype)[::step]
    missing = np.random.default_rng(1).random(values.size) < 0.3
    for mask in (None, missing):
        found = arrow_array(values, missing=mask)
        found.validate(full=True)
        assert found.equals(pa.array(values, mask=mask))


def test_types_of_the_same_width():
    days = np.array([0, 1, -1], np.int32)
    assert arrow_array(days, pa.date32()).equals(pa.array(days, pa.date32()))
    stamps = np.array([0, 1, -1], np.int64)
    assert arrow_array(stamps, pa.timestamp("ms"), np.array([False, True, False])).to_pylist()[1] is None
    assert arrow_array(stamps, pa.timestamp("ms")).equals(pa.array(stamps, pa.timestamp("ms")))


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()])
@pytest.mark.parametrize("text", ["", "a", "é\n"])
def test_scalars(kind, text):
    plain = text.encode() if "binary" in str(kind) else text
    assert arrow_text(text, kind).equals(pa.scalar(plain, kind))
    assert arrow_null(kind).equals(pa.scalar(None, kind))


PROBE = """
import sys, graphprep
out = sys.argv[1]
graphprep.convert("sample_data/shop/chunked", out + "/chunked")
graphprep.convert("sample_data/people/graph.json", out + "/people")
for store in ("chunked", "people"):
    for target in ("parquet", "edges", "dgl-chunked", "graphbolt"):
        graphprep.export(f"{out}/{store}", f"{out}/{store}-{target}", target, drop_unsupported=True)
assert "pyarrow" in sys.modules
assert "pandas" not in sys.modules
"""


def test_no_run_loads_pandas(tmp_path, pytestconfig):
    pytest.importorskip("pandas")
    command = [sys.executable, "-c", PROBE, str(tmp_path)]
    subprocess.run(command, cwd=pytestconfig.rootpath, check=True, timeout=300)
