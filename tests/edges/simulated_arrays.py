"""Functions over arrays that lie on the simulated device: prints what differs from the CPU, or nothing.

``python tests/kernels/simulated.py tests/edges/simulated_arrays.py``.
"""

from __future__ import annotations

import dataclasses
import sys

import numpy as np

import graphprep
from graphprep.edges.device.arrays import DeviceArray
from graphprep.kernels.cuda.frontend import cuda
from graphprep.model.errors import DataError, UsageError

SRC, DST = np.array([0, 5, 2, 2, 0, 3, 5, 2, 2]), np.array([1, 0, 4, 4, 1, 2, 3, 0, 4])


def there(value):
    """Return an array, or an adjacency, with its arrays on the device."""
    if not isinstance(value, graphprep.Adjacency):
        return cuda.to_device(value)
    arrays = {name: getattr(value, name) for name in ("indptr", "indices", "edge_ids")}
    return dataclasses.replace(value, **{name: one if one is None else cuda.to_device(one) for name, one in arrays.items()})


def shown(result):
    """Return what a function returned as values and dtypes, whether it lies here or there."""
    if isinstance(result, tuple):
        return [shown(one) for one in result]
    if isinstance(result, graphprep.Adjacency):
        arrays = (result.indptr, result.indices, result.edge_ids)
        return [result.layout, result.num_neighbors, *(shown(one) for one in arrays if one is not None)]
    here = result.copy_to_host() if isinstance(result, DeviceArray) else result
    return here.dtype.name, here.tolist()


def compare(function, *given, **options):
    """Print what differs."""
    wanted, found = function(*given, **options), function(*map(there, given), **options)
    if shown(found) != shown(wanted):
        print(f"{function.__name__} {options}: {shown(found)} instead of {shown(wanted)}")
    if "DeviceArray" not in str([type(one).__name__ for one in arrays_in(found)]):
        print(f"{function.__name__}: the result does not lie on the device")


def arrays_in(result):
    """Yield the arrays of a result."""
    for one in result if isinstance(result, tuple) else (result,):
        yield from (one.indptr, one.indices) if isinstance(one, graphprep.Adjacency) else (one,)


def refused(kind, words, function, *given, **options):
    """Print where an error is not the one that is expected."""
    try:
        function(*given, **options)
    except kind as error:
        if str(error) != words:
            print(f"{error} instead of {words}")
    else:
        print(f"{function.__name__}: no error, and not {words}")


def main():
    for dtype in (np.int32, np.int64):
        src, dst = SRC.astype(dtype), DST.astype(dtype)
        for layout in ("csc", "csr"):
            compare(graphprep.build_adjacency, src, dst, layout=layout, num_nodes=(7, 9), sort_neighbors=dtype == np.int32)
        compare(graphprep.build_adjacency, src, dst, edge_ids=False)
        compare(graphprep.degrees, src, dst)
        compare(graphprep.dedup_edges, src, dst)
    csr = graphprep.build_adjacency(SRC, DST, 8, "csr")
    wide = dataclasses.replace(csr, edge_ids=csr.edge_ids.astype(np.int64))
    for edge_ids in ("keep", "rows", "drop"):
        compare(graphprep.transpose, wide, edge_ids=edge_ids)
    compare(graphprep.transpose, dataclasses.replace(csr, edge_ids=None))
    for by in ("degree", "in-degree", "out-degree"):
        compare(graphprep.reorder_by_degree, csr, by=by, sort_neighbors=by == "degree")
    none = np.zeros(0, np.int64)
    compare(graphprep.build_adjacency, none, none)
    compare(graphprep.dedup_edges, none, none)

    src, dst = there(SRC), there(DST)
    built = graphprep.build_adjacency(src, dst)
    if shown(graphprep.transpose(built)) != shown(graphprep.transpose(graphprep.build_adjacency(SRC, DST))):
        print("what was built there is not taken there")
    build = graphprep.build_adjacency
    wanted = "src: expected IDs in 0..3, found 5\n  fix: raise num_nodes"
    refused(DataError, wanted, build, src, dst, 4)
    refused(DataError, "src: expected IDs in 0..1, found -1\n  fix: count nodes from 0", build, there(SRC * 0 - 1), dst, 2)
    refused(UsageError, "arrays lie on cuda:0 and the host\n  fix: move them", build, src, DST)
    wanted = 'device="cpu": the arrays lie on cuda:0\n  fix: leave device out, or move them'
    refused(UsageError, wanted, build, src, dst, device="cpu")
    wanted = "src has 9 IDs, dst has 8\n  fix: pass one of each for every edge"
    refused(UsageError, wanted, build, src, there(DST[1:]))
    wanted = (
        "src must be int32 or int64 in one dimension, without gaps, found float64 of shape (9,)\n"
        "  fix: pass such an array, or one of the host"
    )
    refused(UsageError, wanted, build, there(SRC * 1.0), dst)
    wanted = "takes arrays of the host\n  fix: copy them to the host, and pass device to compute on it"
    refused(UsageError, f"sort_keys {wanted}", graphprep.sort_keys, src)
    refused(UsageError, f"sort_edges {wanted}", graphprep.sort_edges, src, dst)
    refused(UsageError, f"rank_ids {wanted}", graphprep.rank_ids, src)
    for change, wanted in {
        "indptr": "indptr must ascend from 0 to 9\n  fix: pass what graphprep.build_adjacency returned",
        "indices": "indices must be in 0..7, found 12\n  fix: say in num_neighbors how many nodes the neighbors' side has",
        "edge_ids": "edge_ids must be at least 0, found -3\n  fix: pass positions of edges",
    }.items():
        array = {"indptr": csr.indptr[::-1], "indices": csr.indices * 3, "edge_ids": csr.edge_ids - 3}[change]
        bad = dataclasses.replace(csr, **{change: np.ascontiguousarray(array)})
        refused(DataError, wanted, graphprep.transpose, there(bad))


if __name__ == "__main__":
    sys.exit(main())
