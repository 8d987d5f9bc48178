"""Kernels that are said to be needed are those that a conversion runs."""

import pytest

import graphprep
from graphprep.kernels.compiler import jit
from graphprep.plan import kernels

EDGES = "".join(f"{k % 50} {k * 7 % 53}\n" for k in range(2000))


@pytest.mark.parametrize(
    ("text", "options"),
    [
        pytest.param(EDGES, {"format": "edges"}, id="dense"),
        pytest.param(EDGES, {"format": "edges", "ids": "sparse"}, id="sparse"),
        pytest.param(EDGES, {"format": "edges", "partition_by": "hash", "partitions": 2}, id="hash"),
        pytest.param(
            "".join(f"node-{k % 50},item-{k * 7 % 53}\n" for k in range(2000)),
            {"format": "edges", "decoder_options": {"id_type": "string"}},
            id="texts",
        ),
    ],
)
def test_what_is_needed_is_run(text, options, tmp_path, monkeypatch):
    (tmp_path / "edges.txt").write_text(text)
    ran, named = set(), []
    call = jit.Kernel.__call__

    def record(self, *args):
        module = self.py_func.__module__.removeprefix("graphprep.kernels.cpu.")
        ran.add((f"{module}.{self.py_func.__qualname__}", jit.text_of(map(jit._kind_of, args))))
        return call(self, *args)

    monkeypatch.setattr(jit.Kernel, "__call__", record)
    monkeypatch.setattr(kernels, "is_kept", lambda *one: named.append(one))
    planned = graphprep.plan(tmp_path / "edges.txt", **options)
    ran.clear()
    graphprep.convert(tmp_path / "edges.txt", tmp_path / "out", **options)
    assert named
    assert set(named) <= ran
    assert planned.missing_kernels == tuple(dict.fromkeys(name for name, _ in named))
    assert planned.compile_s > 0
