"""Convert every golden case in one process, and print what that took of kernels, as JSON: run by test_compile_cache.py."""

import json
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "golden"))

import golden_cases

import graphprep
from graphprep.model.shown import compilation


def main(out: str) -> None:
    for case in golden_cases.load_cases():
        shutil.rmtree(out, ignore_errors=True)
        graphprep.convert([str(path) for path in case.input_paths], out, **case.resolved_options())
    print(json.dumps({"compiled": compilation.done.num_kernels, "kernels": dict(used_kernels())}))


def used_kernels():
    """Yield the kernels that were called: their name, signatures, and how many of these Numba ran."""
    from graphprep.kernels.compiler import jit, kept

    for name, module in sorted(sys.modules.items()):
        for kernel in vars(module).values() if name.startswith("graphprep.kernels.cpu.") else ():
            if isinstance(kernel, jit.Kernel) and kernel.__module__ == name and kernel._calls:
                signatures = [
                    " ".join("?" if kind is None else kept.text_of((kind,)) for kind in kinds) for kinds in kernel._calls
                ]
                by_numba = sum(call == kernel._call_numba for call in kernel._calls.values())
                yield f"{name.rpartition('.')[2]}.{kernel.__name__}", [signatures, by_numba]


main(sys.argv[1])
