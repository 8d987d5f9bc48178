"""Run every command over every sample, option and format, and note which kernels were called, with which types.

``python tests/kernels/signatures.py [CACHE]`` brings graphprep/kernels/compiler/signatures.txt up to date: what comes with the
package, and what is compiled together. What no run here calls stays on the list, as long as there is such a kernel; what lies in
the folder CACHE (``NUMBA_CACHE_DIR`` of a run of all tests, say) is added. With ``--print`` it prints what the runs call:
test_shipped.py.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from golden.golden_cases import REWRITES, load_cases

import graphprep
from graphprep.engine.budget import compiling_jobs
from graphprep.kernels.compiler import jit, manage, shipped
from graphprep.kernels.compiler.shipped import Signature
from graphprep.model.errors import GraphprepError

HEAD = """\
# The kernels, and the types of their arguments, whose machine code comes with the package; behind the colon, the commands and
# formats that call them: in most of the runs of tests/kernels/signatures.py, which writes this file, or (?) in some.
"""
EXPORTED = {
    *(
        "davis_bipartite",
        "dtypes_defaults",
        "edges_columns",
        "edges_timed",
        "karate_csv",
        "karate_partition_file",
        "lesmis_weight",
    ),
    *("names_codes_auto", "names_lesmis", "people_tables", "shop_edgelist_both_parts", "shop_json_roles", "town_json"),
}
SAMPLED = (
    *({"fanouts": ["3,2"]}, {"fanouts": ["3,2"], "replace": True}, {"full": 2, "direction": "both"}, {"layer_sizes": "4,2"}),
    *({"fanouts": ["3,2"], "weight_column": "weight", "replace": replace} for replace in (False, True)),
    {"fanouts": ["3,2"], "add_self_loop": True, "direction": "out"},
)
TIMED = (
    *({"fanouts": ["3,2"]}, {"fanouts": ["3,2"], "replace": True}, {"full": 2, "direction": "both"}, {"layer_sizes": "4,2"}),
    {"fanouts": ["3,2"], "weight_column": "time"},
)
NEGATIVES = (
    {"negatives": "2", "corrupt": "both"},
    {"negatives": "2", "negatives_by": "degree"},
    {"negatives": "2", "negatives_by": "khop:2"},
)
ROLES = {"src_col": "src", "dst_col": "dst", "weight_col": "weight"}
SMALL = "160MiB"  # a limit under which a graph of some megabytes does not stay in memory
Run = tuple[str, Callable[[], object]]


def runs(folder: Path) -> Iterator[Run]:
    """Yield what is run, and what it is called in the list."""
    stores, ids = {}, folder / "ids.npy"
    np.save(ids, np.arange(5))
    for case in load_cases():
        inputs, options = [str(path) for path in case.input_paths], case.resolved_options()
        out = str(folder / case.name)
        yield f"convert-{options['format']}", lambda: graphprep.convert(inputs, out, **options, overwrite=True)  # noqa: B023
        stores[case.name] = str(case.store)
        if case.name in EXPORTED:
            yield "validate-against", lambda: graphprep.validate(out, against=inputs)  # noqa: B023
    for name, store in stores.items():
        yield "validate", lambda: graphprep.validate(store)  # noqa: B023
        yield "stats", lambda: graphprep.stats(store, triangles="exact")  # noqa: B023
        yield "info", lambda: graphprep.info(store)  # noqa: B023
        for of in ("nodes", "edges") if name in EXPORTED else ():
            out = str(folder / f"{name}-split-{of}")
            yield "split", lambda: graphprep.split(store, out, "0.8/0.1/0.1", of=[of], overwrite_column=True)  # noqa: B023
            for options in NEGATIVES if of == "edges" else ():
                asked = {"of": [of], "overwrite_column": True, "overwrite": True} | options
                yield "split", lambda: graphprep.split(store, out, "0.8/0.1/0.1", **asked)  # noqa: B023
        for options in TIMED if name == "edges_timed" else ():
            given = {"seeds": [str(ids)], "seed_times": [str(ids)], "time_column": "time", "typed_ids": True} | options
            yield "sample", lambda: graphprep.sample(store, folder / "flows", **given, overwrite=True)  # noqa: B023
        for options in SAMPLED if name in ("karate_csv", "lesmis_weight", "shop_edgelist_both_parts") else ():
            given = {"seeds": [f"{'0=' * name.startswith('shop')}{ids}"], "typed_ids": True} | options
            yield "sample", lambda: graphprep.sample(store, folder / "flows", **given, overwrite=True)  # noqa: B023
        for target in graphprep.export_targets() if name in EXPORTED else ():
            out, options = str(folder / f"{name}-{target.name}"), {"drop_unsupported": True}
            yield f"export-{target.name}", lambda: graphprep.export(store, out, target.name, **options)  # noqa: B023
    for number, case in enumerate(REWRITES):
        yield f"{case.command}", lambda: case.run(folder / f"rewrite-{number}")  # noqa: B023
    yield from large_runs(folder)


def large_runs(folder: Path) -> Iterator[Run]:
    """Yield runs over graphs that are cut into pieces, by threads and by a memory limit."""
    text, weighted = folder / "large.txt", folder / "weighted.csv"
    yield "generate", lambda: graphprep.generate("rmat", text, scale=16, edge_factor=16)
    lines = ["src,dst,weight,name\n"]
    lines += (f"a{i * 7919 % 50021},b{i * 104729 % 70001},{i / 8},n{i % 97}\n" for i in range(400_000))
    weighted.write_text("".join(lines))
    roles = {"format": "edges", "decoder_options": {"id_type": "string", **ROLES}}
    for limit in (SMALL, "4GiB"):
        for name, options in (
            ("plain", {}),
            ("parts", {"partitions": 3, "layout": "both"}),
            ("sparse", {"ids": "sparse", "partition_by": "hash", "partitions": 2}),
        ):
            out = str(folder / f"large-{limit}-{name}")
            common = {"format": "edges", "memory_limit": limit, "threads": 2} | options
            yield "convert-edges", lambda: graphprep.convert(text, out, **common)  # noqa: B023
            for command in (graphprep.validate, graphprep.stats):
                yield command.__name__, lambda: command(out, memory_limit=limit)  # noqa: B023
            yield "reorder", lambda: graphprep.reorder(out, f"{out}-ordered", memory_limit=limit)  # noqa: B023
            yield "transform", lambda: graphprep.transform(out, f"{out}-simple", ["to-simple"], memory_limit=limit)  # noqa: B023
        out = str(folder / f"large-{limit}-texts")
        yield "convert-edges", lambda: graphprep.convert(weighted, out, memory_limit=limit, threads=2, **roles)  # noqa: B023


def record(todo: Iterator[Run]) -> tuple[Counter[str], dict[Signature, Counter[str]]]:
    """Run all; return how often each was run, and how many of these runs called each kernel."""
    seen: set[tuple[jit.Kernel, jit.Kinds]] = set()
    call = jit.Kernel.__call__

    def note(kernel: jit.Kernel, *args: object) -> object:
        kinds = tuple(map(jit._kind_of, args))
        if None not in kinds:
            seen.add((kernel, kinds))
        return call(kernel, *args)

    jit.Kernel.__call__ = note
    numbers: Counter[str] = Counter()
    uses: dict[Signature, Counter[str]] = defaultdict(Counter)
    for name, one in todo:
        seen.clear()
        try:
            one()
        except GraphprepError as error:  # a target that does not fit the graph: what was called till then counts
            print(f"{name}: {error}", file=sys.stderr)
        numbers[name] += 1
        for kernel, kinds in list(seen):  # threads of a run that failed may still call some
            uses[shipped.signature_of(kernel.py_func, kinds)][name] += 1
    return numbers, uses


def text_of(numbers: Counter[str], uses: dict[Signature, Counter[str]]) -> str:
    """Return the list."""
    lines = []
    for signature in sorted(uses):
        tags = [f"{name}{'?' * (2 * num < numbers[name])}" for name, num in sorted(uses[signature].items())]
        lines.append(f"{signature} : {' '.join(tags)}".rstrip(" :") + "\n")
    return HEAD + "".join(lines)


def known(cache: str | None) -> Iterator[Signature]:
    """Yield what is on the list or in a cache, and can still be called."""
    found = set(shipped.read_list())
    for path in Path(cache).glob("*.kernel") if cache else ():
        module, _, types = path.read_bytes().split(b"\0", 2)[1].decode().split("\n")[1].partition("(")
        found.add(Signature(module.removeprefix("graphprep.kernels.cpu."), types.rstrip(")")))
    for one in found:
        try:
            if one.load().py_func.__code__.co_argcount == len(one.kinds):
                yield one
        except (ImportError, AttributeError):
            continue


def main() -> None:
    """Write or print the list."""
    manage.build_kernels(
        compiling_jobs(), lambda *_: None
    )  # a run that compiles meanwhile takes memory, and other ways with it
    with tempfile.TemporaryDirectory() as folder:
        numbers, uses = record(runs(Path(folder)))
    if "--print" in sys.argv:
        print(text_of(numbers, uses), end="")
        return
    for one in known(*sys.argv[1:] or [None]):
        uses.setdefault(one, Counter())
    shipped.LIST.write_text(text_of(numbers, uses))
    print(f"{len(uses)} signatures")


if __name__ == "__main__":
    main()
