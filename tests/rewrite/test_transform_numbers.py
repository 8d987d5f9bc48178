"""Numbers in ``filter`` and ``to-simple``: as Python computes them, or an error, whatever the dtype of a column is."""

import operator
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphprep
from graphprep.model.errors import DataError, UsageError
from graphprep.rewrite.transform import numbers

SIGNS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "%": operator.mod}
COMPARE = {"<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt, ">=": operator.ge}
DTYPES = (
    *(np.dtype(f"{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)),
    np.dtype("f2"),
    np.dtype("f4"),
    np.dtype("f8"),
)


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def write_store(tmp_path, **columns):
    """A store of as many edges 0 -> 1 as there are values, with these columns."""
    size = len(next(iter(columns.values())))
    np.savez(tmp_path / "g.npz", src=np.zeros(size, np.int64), dst=np.ones(size, np.int64))
    for name, values in columns.items():
        np.save(tmp_path / f"{name}.npy", values)
    given = [f"{name}={tmp_path / name}.npy" for name in columns]
    graphprep.convert(str(tmp_path / "g.npz"), str(tmp_path / "store"), edge_data=given)
    return tmp_path / "store"


def filtered(tmp_path, store, expression):
    graphprep.transform(store, tmp_path / "out", ["filter", expression], overwrite=True)
    return graphprep.load(tmp_path / "out").num_edges()


ROWS = {
    "u": np.array([200, 10, 255], np.uint8),
    "v": np.array([100, 0, 254], np.uint8),
    "h": np.array([60000, 1, 0], np.float16),
    "i": np.array([2**53 + 1, -1, 2**63 - 1], np.int64),
    "big": np.array([2**53, 2**63, 2**64 - 1], np.uint64),
    "yes": np.array([True, False, True]),
}


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    return write_store(folder, **ROWS, f=np.array([0.7, 0.1, 1e38], np.float32))


@pytest.mark.parametrize(
    "expression",
    [
        *("u + v > 255", "u * 2 > 300", "u - v < 0", "-u < 0", "h * 2 > 70000", "h > 70000", "u % 7 == 4", "u / 2 == 100"),
        *("i + 1 == 9223372036854775808", "big > i", "big == i", "i == 9007199254740993", "i == 9007199254740992.0"),
        *("big - i == -1", "i < 9007199254740993.0", "v != 0 and u % v == 100", "v == 0 or u % v == 1", "yes + yes == 2"),
        *("not v != 0 or u % v == 1", "u in (10, 300)", "u - 300 == -100", "big != 18446744073709551616", "-i == 1"),
    ],
)
def test_expressions_are_computed_as_in_python(expression, rows, tmp_path):
    values = [{name: column[row].item() for name, column in ROWS.items()} for row in range(3)]
    assert filtered(tmp_path, rows, expression) == sum(bool(eval(expression, {}, one)) for one in values)


@pytest.mark.parametrize(("expression", "holds"), [("f >= 0.7", 2), ("f == 0.7", 1), ("0.1 < f", 2), ("f * 10 > 1e39", 0)])
def test_a_float_is_what_the_column_holds_of_it(expression, holds, rows, tmp_path):
    assert filtered(tmp_path, rows, expression) == holds


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("big + 1 > 0", "18446744073709551616 is more than 64 bits hold"),
        ("i * 2 < 0 or i * 4 > 0", "36893488147419103228 is more than 64 bits hold"),
        ("-big < 0", "-18446744073709551615 is more than 64 bits hold"),
        ("u % v > 0", "division by zero"),
    ],
)
def test_what_64_bits_cannot_hold_is_an_error(expression, message, rows, tmp_path):
    with pytest.raises(UsageError, match=f"cannot be computed: {message}"):
        filtered(tmp_path, rows, expression)


@pytest.mark.parametrize("sign", sorted(COMPARE))
def test_nan_beside_large_integers_is_compared_without_a_warning(sign):
    large = np.array([2**63 - 1, 5], np.int64)
    found = numbers.compared(COMPARE[sign], large, np.array([np.nan, 5.0]))
    assert found.tolist() == [COMPARE[sign](2**63 - 1, np.nan), COMPARE[sign](5, 5.0)]


def values_of(dtype):
    if dtype.kind == "f":
        return st.floats(width=dtype.itemsize * 8, allow_nan=False)
    info = np.iinfo(dtype)
    near = st.sampled_from([0, 1, int(info.min), int(info.max), 2**53, 2**53 + 1])
    return (near | st.integers(int(info.min), int(info.max))).filter(lambda one: info.min <= one <= info.max)


@st.composite
def columns(draw):
    dtype = draw(st.sampled_from(DTYPES))
    return np.array(draw(st.lists(values_of(dtype), min_size=3, max_size=3)), dtype)


@given(left=columns(), right=columns(), sign=st.sampled_from(sorted(SIGNS)), test=st.sampled_from(sorted(COMPARE)))
def test_numbers_are_those_of_python(left, right, sign, test):
    """Of integers in 64 bits; floats are IEEE doubles, in which Python has errors where there is no number."""
    pairs = list(zip(left.tolist(), right.tolist(), strict=True))
    assert numbers.compared(COMPARE[test], left, right).tolist() == [COMPARE[test](*pair) for pair in pairs]
    try:
        wanted = [SIGNS[sign](*pair) for pair in pairs]
    except (ArithmeticError, ValueError):
        return
    if any(isinstance(one, int) and not -(2**63) <= one < 2**64 for one in wanted):
        with pytest.raises(OverflowError, match="more than 64 bits hold"):
            numbers.computed(SIGNS[sign], left, right)
        return
    found = numbers.computed(SIGNS[sign], left, right).tolist()
    if left.dtype.kind != "f" != right.dtype.kind and sign != "/":
        assert found == wanted
    else:
        assert found == pytest.approx(wanted, rel=1e-12, nan_ok=True)


# ---- sums


def merged(tmp_path, merge, **columns):
    graphprep.transform(write_store(tmp_path, **columns), tmp_path / "out", ["to-simple", merge], overwrite=True)
    graph = graphprep.load(tmp_path / "out")
    (name,) = graph.edge_types
    return {column.name: np.asarray(graph.column(name, column.name))[0] for column in graph.columns(name)}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array([60000, 60000], np.float16), "a sum of column 'x' is 120000, which float16 cannot hold"),
        (np.array([3e38, 3e38], np.float32), "a sum of column 'x' is 6e+38, which float32 cannot hold"),
        (np.array([1e308, 1e308]), "a sum of column 'x' is more than float64 holds, which float64 cannot hold"),
        (np.array([[1, 3e38], [1, 3e38]], np.float32), "is 6e+38, which float32 cannot hold"),
        (np.array([200, 100], np.uint8), "is 300, which uint8 cannot hold"),
        (np.array([2**62, 2**62]), "is 9223372036854775808, more than 64 bits hold"),
        (np.array([-(2**62), -(2**62), -1]), "is -9223372036854775809, more than 64 bits hold"),
        (np.array([2**63, 2**63], np.uint64), "is 18446744073709551616, more than 64 bits hold"),
    ],
)
def test_sums_that_a_dtype_cannot_hold_are_errors(values, message, tmp_path):
    with pytest.raises(DataError) as error:
        merged(tmp_path, "sum", x=values)
    assert message in error.value.message
    assert error.value.place == "_N:_E:_N"


@pytest.mark.parametrize(
    "values",
    [
        *(np.array([2**62, 2**62 - 1, 5, -5]), np.array([2**63 - 1, 2**63 - 1, -(2**63), -(2**62)]), np.array([-(2**63), 0])),
        *(np.array([2**63, 2**63 - 1], np.uint64), np.array([-1, -1, 2**40]), np.array([100, 27], np.int8)),
        *(np.array([65000, 500], np.float16), np.array([np.inf, 1], np.float32), np.array([1e308, -1e308, 3])),
    ],
)
def test_sums_that_fit_are_computed(values, tmp_path):
    assert merged(tmp_path, "sum", x=values)["x"] == sum(values.tolist())


def test_dates_codes_and_ids_are_not_added_up(tmp_path):
    table = {"src": [0, 0], "dst": [1, 1], "day": np.array(["2020-01-02", "2021-01-01"], "M8[s]"), "kind": ["b", "a"]}
    pq.write_table(
        pa.table(table | {"ok": [False, True], "edge_id": [7, 9], "k": [1, 2], "parent_id": [5, 6]}), tmp_path / "e.parquet"
    )
    graphprep.convert(str(tmp_path / "e.parquet"), str(tmp_path / "store"), categories=["_N:_E:_N:kind"])
    summary = graphprep.transform(tmp_path / "store", tmp_path / "out", "to-simple sum")
    graph = graphprep.load(tmp_path / "out")
    row = graph.to_arrow(graph.edge_types[0]).to_pylist()[0]
    assert (row["kind"], row["k"], row["parent_id"]) == ("b", 3, 5)
    assert str(row["day"]).startswith("2020-01-02")
    names = "'day', 'kind', 'ok', 'edge_id', 'parent_id'"
    note = f"sum: dates, codes, booleans, labels and IDs have the value of the first edge: {names}"
    assert note in summary.notes
    graphprep.transform(tmp_path / "store", tmp_path / "max", "to-simple max")
    row = graphprep.load(tmp_path / "max").to_arrow(graph.edge_types[0]).to_pylist()[0]
    assert (row["kind"], row["k"], row["parent_id"], str(row["day"])[:10]) == ("b", 2, 5, "2021-01-01")
