"""Functions over arrays on a device against the CPU's: of arrays that lie there, and of arrays of the host.

On a GPU where there is one; ``test_simulated_device.py`` runs this file on the simulator.
"""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from devices import is_simulated
from kernels.cub_stand_in import stand_in

import graphprep
from graphprep.edges.device.arrays import DeviceArray
from graphprep.model.errors import DataError, DeviceError, UsageError

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("gpu")]
SRC, DST = np.array([0, 5, 2, 2, 0, 3, 5, 2, 2]), np.array([1, 0, 4, 4, 1, 2, 3, 0, 4])
CSR = graphprep.build_adjacency(SRC, DST, 8, "csr")
WIDE = dataclasses.replace(CSR, edge_ids=CSR.edge_ids.astype(np.int64))
WIDE_NEIGHBORS = dataclasses.replace(CSR, indices=CSR.indices.astype(np.int64))
BARE = dataclasses.replace(CSR, edge_ids=None)
NONE = np.zeros(0, np.int64)
NARROW = SRC.astype(np.int32), DST.astype(np.int32)
MIXED = np.array([7, -3, 0, 2**40, -3, -(2**50), 7])
HOLDS_NO_WORD = NARROW[0] << 28, NARROW[1] << 28

CALLS = {
    "csc": (graphprep.build_adjacency, (SRC, DST), {"num_nodes": (7, 9)}),
    "csr sorted": (
        graphprep.build_adjacency,
        NARROW,
        {"layout": "csr", "num_nodes": (7, 9), "sort_neighbors": True},
    ),
    "without IDs": (graphprep.build_adjacency, NARROW, {"edge_ids": False}),
    "two widths": (graphprep.build_adjacency, (SRC, NARROW[1]), {}),
    "no edges": (graphprep.build_adjacency, (NONE, NONE), {}),
    "degrees of int64": (graphprep.degrees, (SRC, DST), {}),
    "degrees": (graphprep.degrees, NARROW, {}),
    "transpose": (graphprep.transpose, (WIDE,), {}),
    "transpose to rows": (graphprep.transpose, (WIDE,), {"edge_ids": "rows"}),
    "transpose without": (graphprep.transpose, (WIDE,), {"edge_ids": "drop"}),
    "transpose bare": (graphprep.transpose, (BARE,), {}),
    "by degree": (graphprep.reorder_by_degree, (CSR,), {"sort_neighbors": True}),
    "by in-degree": (graphprep.reorder_by_degree, (WIDE,), {"by": "in-degree"}),
    "by out-degree": (graphprep.reorder_by_degree, (BARE,), {"by": "out-degree"}),
    "wide neighbours": (graphprep.reorder_by_degree, (WIDE_NEIGHBORS,), {}),
    "sort edges": (graphprep.sort_edges, (SRC, DST), {}),
    "sort wide edges": (graphprep.sort_edges, HOLDS_NO_WORD, {}),
    "sort no edges": (graphprep.sort_edges, (NONE, NONE), {}),
    "dedup": (graphprep.dedup_edges, NARROW, {}),
    "dedup none": (graphprep.dedup_edges, (NONE, NONE), {}),
    "sort keys": (graphprep.sort_keys, (MIXED,), {}),
    "sort keys below 0": (graphprep.sort_keys, (-MIXED[[0, 3, 6]],), {}),
    "sort narrow keys": (graphprep.sort_keys, (SRC.astype(np.int32) - 3,), {}),
    "sort keys without a sign": (graphprep.sort_keys, (MIXED.astype(np.uint64),), {}),
    "sort narrow keys without a sign": (graphprep.sort_keys, ((SRC - 3).astype(np.uint32),), {}),
    "sort no keys": (graphprep.sort_keys, (NONE,), {}),
    "rank": (graphprep.rank_ids, (MIXED,), {}),
    "rank narrow": (graphprep.rank_ids, (NARROW[0] - 3,), {}),
    "rank without a sign": (graphprep.rank_ids, (MIXED.astype(np.uint64),), {}),
    "rank one": (graphprep.rank_ids, (SRC[:1],), {}),
    "rank none": (graphprep.rank_ids, (NONE,), {}),
    "split": (graphprep.split_by_partition, (SRC,), {}),
    "split narrow": (graphprep.split_by_partition, (NARROW[0],), {"num_parts": 8}),
    "split none": (graphprep.split_by_partition, (NONE,), {"num_parts": 2}),
}
by_call = pytest.mark.parametrize(("function", "given", "options"), CALLS.values(), ids=CALLS)


def numba_there(array):
    from graphprep.kernels.cuda.frontend import cuda

    return cuda.to_device(array)


class Bare:
    """An array on a device of whoever has CUDA's array interface alone: the driver knows where it lies."""

    def __init__(self, array):
        self.held = numba_there(array)
        self.__cuda_array_interface__ = self.held.__cuda_array_interface__


def torch_there(array):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")
    return torch.from_numpy(array).cuda()


class Lent:
    """An array on a device of whoever lends by DLPack alone."""

    def __init__(self, array):
        self.tensor = torch_there(array)
        self.__dlpack__, self.__dlpack_device__ = self.tensor.__dlpack__, self.tensor.__dlpack_device__


def lie_there(value, lay):
    """Return an array, or an adjacency, with its arrays on the device."""
    if not isinstance(value, graphprep.Adjacency):
        return lay(value)
    arrays = {name: getattr(value, name) for name in ("indptr", "indices", "edge_ids")}
    return dataclasses.replace(value, **{name: one if one is None else lay(one) for name, one in arrays.items()})


def arrays_of(result):
    """Return the arrays of a result."""
    arrays = []
    for one in result if isinstance(result, tuple) else (result,):
        of_rows = isinstance(one, graphprep.Adjacency)
        arrays += [held for held in (one.indptr, one.indices, one.edge_ids) if held is not None] if of_rows else [one]
    return arrays


def shown(result):
    """Return what a function returned as values and dtypes, whether it lies here or there."""
    rows = [one for one in (result if isinstance(result, tuple) else (result,)) if isinstance(one, graphprep.Adjacency)]
    here = [one.copy_to_host() if isinstance(one, DeviceArray) else one for one in arrays_of(result)]
    return [(one.layout, one.num_neighbors) for one in rows], [(one.dtype.name, one.tolist()) for one in here]


@by_call
@pytest.mark.parametrize("lay", [numba_there] if is_simulated() else [numba_there, Bare, torch_there, Lent])
def test_arrays_that_lie_there(function, given, options, lay):
    if lay in (torch_there, Lent) and any(array.dtype.kind == "u" for one in given for array in arrays_of(one)):
        pytest.skip("torch has few operations on integers without a sign")
    found = function(*(lie_there(one, lay) for one in given), **options)
    assert {type(array) for array in arrays_of(found)} == {DeviceArray}
    assert shown(found) == shown(function(*given, **options))


@by_call
def test_arrays_of_the_host_are_uploaded_once(function, given, options, monkeypatch):
    from graphprep.edges.device import graphs
    from graphprep.kernels.cuda.slots import Room

    num_arrays, uploads, lay = sum(len(arrays_of(one)) for one in given), [], graphs.UploadingGraphs._held
    monkeypatch.setattr(graphs.UploadingGraphs, "_held", lambda self, *one: uploads.append(one[1]) or lay(self, *one))
    monkeypatch.setattr(Room, "upload", None)
    found = function(*given, **options, device="cuda")
    assert {type(array) for array in arrays_of(found)} == {np.ndarray}
    assert shown(found) == shown(function(*given, **options))
    assert len(set(uploads)) == len(uploads) == num_arrays


@by_call
def test_what_does_not_fit_at_once_passes_through_piece_by_piece(function, given, options, monkeypatch):
    from graphprep.edges.device import graphs
    from graphprep.kernels.cuda.slots import Room

    with monkeypatch.context() as patch:  # a device that holds none of the arrays
        patch.setattr(graphs, "cuda", SimpleNamespace(to_device=fail_for_want_of_memory))
        found = function(*given, **options, device="cuda")
    assert shown(found) == shown(function(*given, **options))
    there = [lie_there(one, numba_there) for one in given]
    monkeypatch.setattr(Room, "take", fail_for_want_of_memory)
    if sum(array.size for one in given for array in arrays_of(one)):
        with pytest.raises(DeviceError) as caught:
            function(*there, **options)
        assert str(caught.value) == (
            "the device's memory does not suffice: 9 of 8 bytes\n"
            "  fix: pass arrays of the host: what does not fit on the device at once passes through it piece by piece"
        )


def fail_for_want_of_memory(*_, **__):
    from graphprep.kernels.cuda.slots import NoRoomError

    raise NoRoomError("9 of 8 bytes")


def test_one_upload_serves_all_that_is_made_of_it():
    """What a function returns is what the next one takes, as it lies."""
    src, dst, parts = map(numba_there, (SRC, DST, SRC % 3))
    csr, csc = (graphprep.build_adjacency(src, dst, layout=layout) for layout in ("csr", "csc"))
    wanted = [graphprep.build_adjacency(SRC, DST, layout=layout) for layout in ("csr", "csc")]
    assert shown((csr, csc)) == shown(tuple(wanted))
    assert shown(graphprep.transpose(csr)) == shown(graphprep.transpose(wanted[0]))
    assert shown(graphprep.degrees(src, dst)) == shown(graphprep.degrees(SRC, DST))
    assert shown(graphprep.reorder_by_degree(csc)) == shown(graphprep.reorder_by_degree(wanted[1]))
    offsets, order = graphprep.split_by_partition(parts)
    assert offsets.copy_to_host().tolist() == [0, 3, 3, 9]
    assert order.copy_to_host().tolist() == [0, 4, 5, 1, 2, 3, 6, 7, 8]


@pytest.mark.parametrize("width", [np.int32, np.int64])
def test_many_keys(width):
    """More than a block sorts at a time."""
    size = 150 if is_simulated() else 3_000_000
    keys = np.random.default_rng(1).integers(-(2**30), 2**30, size).astype(width) // 1000 * 1000
    for found, wanted in zip(graphprep.rank_ids(numba_there(keys)), np.unique(keys, return_inverse=True), strict=True):
        assert np.array_equal(found.copy_to_host(), wanted)
    assert np.array_equal(graphprep.sort_keys(numba_there(keys)).copy_to_host(), np.sort(keys))


# ---- CUB


def test_cub_sorts_and_scans_where_it_is_there(monkeypatch, tmp_path):
    """The real one on a GPU; on the simulator a stand-in."""
    from graphprep.edges.device import graphs
    from graphprep.kernels.cuda import cccl

    if not is_simulated():
        pytest.importorskip("cuda.compute", reason="the extra cccl13 is not installed")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    used = []
    if is_simulated():
        monkeypatch.setattr(graphs, "find_fast", lambda device: lambda: cccl.Fast(stand_in(), "1.2.1-sm_52"))
    run = cccl.Fast._run
    monkeypatch.setattr(cccl.Fast, "_run", lambda self, *given, **named: used.append(1) or run(self, *given, **named))
    graphs.graphs_of.cache_clear()
    for function, given, options in (CALLS[name] for name in ("csc", "csr sorted", "by degree", "dedup", "rank", "split")):
        before = len(used)
        found = function(*(lie_there(one, numba_there) for one in given), **options)
        assert shown(found) == shown(function(*given, **options))
        assert len(used) > before
    graphs.graphs_of.cache_clear()


# ---- what is refused


@pytest.mark.parametrize(
    ("kind", "words", "call"),
    [
        (DataError, "src: expected IDs in 0..3, found 5\n  fix: raise num_nodes", lambda src, dst: (src, dst, 4)),
        (UsageError, "arrays lie on cuda:0 and the host\n  fix: move them", lambda src, dst: (src, DST)),
        (
            UsageError,
            "src has 9 IDs, dst has 8\n  fix: pass one of each for every edge",
            lambda src, dst: (src, numba_there(DST[1:])),
        ),
        (
            DataError,
            "src: expected IDs in 0..1, found -1\n  fix: count nodes from 0",
            lambda src, dst: (numba_there(SRC * 0 - 1), dst, 2),
        ),
        (
            UsageError,
            "src must be int32 or int64 in one dimension, without gaps, found float64 of shape (9,)\n"
            "  fix: pass such an array, or one of the host",
            lambda src, dst: (numba_there(SRC * 1.0), dst),
        ),
    ],
)
def test_what_is_refused(kind, words, call):
    given = call(numba_there(SRC), numba_there(DST))
    with pytest.raises(kind) as caught:
        graphprep.build_adjacency(*given)
    assert str(caught.value) == words


@pytest.mark.parametrize("function", [graphprep.sort_keys, graphprep.rank_ids])
def test_other_keys_are_refused(function):
    with pytest.raises(UsageError) as caught:
        function(numba_there(SRC * 1.0))
    name = "keys" if function is graphprep.sort_keys else "ids"
    assert str(caught.value) == (
        f"{name} must be int32 or int64 or uint32 or uint64 in one dimension, without gaps, found float64 of shape (9,)\n"
        "  fix: pass such an array, or one of the host"
    )


def test_another_device_than_theirs_is_refused():
    with pytest.raises(UsageError) as caught:
        graphprep.sort_keys(numba_there(SRC), device="cpu")
    assert str(caught.value) == 'device="cpu": the arrays lie on cuda:0\n  fix: leave device out, or move them'


@pytest.mark.parametrize(
    ("parts", "num_parts", "found"), [([0, 3, 1], 3, "below 3, found 3"), ([0, -1], None, "below 1, found -1")]
)
def test_partitions_out_of_range(parts, num_parts, found):
    array = np.array(parts)
    for given, device in ((array, None), (array, "cuda"), (numba_there(array), None)):
        with pytest.raises(DataError) as caught:
            graphprep.split_by_partition(given, num_parts, device=device)
        fix = "count partitions from 0" if min(parts) < 0 else "raise num_parts"
        assert str(caught.value) == f"parts: expected partitions {found}\n  fix: {fix}"


@pytest.mark.parametrize(
    ("name", "words"),
    {
        "indptr": "indptr must ascend from 0 to 9\n  fix: pass what graphprep.build_adjacency returned",
        "indices": "indices must be in 0..7, found 12\n  fix: say in num_neighbors how many nodes the neighbors' side has",
        "edge_ids": "edge_ids must be at least 0, found -3\n  fix: pass positions of edges",
    }.items(),
)
def test_an_adjacency_that_does_not_fit_is_refused(name, words):
    array = {"indptr": CSR.indptr[::-1], "indices": CSR.indices * 3, "edge_ids": CSR.edge_ids - 3}[name]
    bad = dataclasses.replace(CSR, **{name: np.ascontiguousarray(array)})
    with pytest.raises(DataError) as caught:
        graphprep.transpose(lie_there(bad, numba_there))
    assert str(caught.value) == words


def test_faults_of_arrays_of_the_host_are_told_as_the_cpu_tells_them():
    told = []
    for device in ("cpu", "cuda"):
        with pytest.raises(DataError) as caught:
            graphprep.build_adjacency(SRC, DST, 4, device=device)
        told.append(str(caught.value))
    assert told[0] == told[1]
    assert told[0].startswith("src[1]: expected an ID in 0..3, found 5")
