"""Compiles every device kernel for every shipped signature without a device, and writes what it takes into docs/cuda.md.

``python docs/device_kernels.py`` needs the libnvvm and the ptxas of a CUDA toolkit; tests compile too, without ptxas.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

PAGE = Path(__file__).resolve().parent / "cuda.md"
CAPABILITIES = ((8, 0), (9, 0), (10, 0))  # A100, H100 and H200, B200
_TABLE = re.compile(r"(?<=<!-- kernels: begin -->\n).*?(?=<!-- kernels: end -->)", re.S)


def compile_to_ptx(kernel: Any, types: tuple[Any, ...]) -> Iterator[tuple[tuple[int, int], str]]:
    """Yield (compute capability, PTX) of a kernel for some types: Numba's front half runs once, libnvvm for each capability.

    Numba asks the device that is there what to compile for, and takes none that came after its own CUDA target was frozen; the
    toolkit's libnvvm knows them. Raises what Numba does where there is no libnvvm.
    """
    from numba.core import config
    from numba.cuda import compiler, dispatcher

    device, wanted = dispatcher.get_current_device, config.FORCE_CUDA_CC
    try:
        dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=CAPABILITIES[0])
        code = kernel.py_func.__code__
        result = compiler.compile_cuda(kernel.py_func, None, types, cc=CAPABILITIES[0])
        target = result.target_context
        library, _ = target.prepare_cuda_kernel(
            result.library, result.fndesc, False, False, result.library._nvvm_options, code.co_filename, code.co_firstlineno
        )
        for capability in CAPABILITIES:
            config.FORCE_CUDA_CC = capability
            yield capability, library.get_asm_str(cc=capability)
    finally:
        dispatcher.get_current_device, config.FORCE_CUDA_CC = device, wanted


def name_of(kernel: Any, types: tuple[Any, ...]) -> str:
    """Write a kernel and the types of its arrays, as the table has them: ``gather(u4, u8)``."""
    arrays = [f"{str(one.dtype)[0]}{one.dtype.bitwidth // 8}" for one in types if hasattr(one, "ndim")]
    return f"{kernel.py_func.__name__}({', '.join(arrays)})"


def rows_of_table() -> Iterator[str]:
    """Compile, assemble, and yield a line of the table for each kernel and signature."""
    from graphprep.kernels.cuda.frontend import MOST_REGISTERS
    from graphprep.kernels.cuda.signatures import shipped

    for kernel, types in shipped():
        found = [assemble(ptx, capability, MOST_REGISTERS) for capability, ptx in compile_to_ptx(kernel, types)]
        registers, spilled, shared = (" / ".join(str(one[k]) for one in found) for k in range(3))
        shared = str(found[0][2]) if len({one[2] for one in found}) == 1 else shared
        yield f"| {name_of(kernel, types)} | {registers} | {spilled} | {shared} |"


def assemble(ptx: str, capability: tuple[int, int], most_registers: int) -> tuple[int, int, int]:
    """Return the registers, the bytes of spilled stores and the bytes of shared memory that ptxas says."""
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(ptx)
        file.flush()
        options = [f"-arch=sm_{capability[0]}{capability[1]}", f"-maxrregcount={most_registers}", "-v", "-o", "/dev/null"]
        text = subprocess.run(["ptxas", *options, file.name], capture_output=True, text=True, check=True).stderr

    def number(pattern: str) -> int:
        found = re.search(pattern, text)
        return int(found[1]) if found else 0

    return number(r"Used (\d+) registers"), number(r"(\d+) bytes spill stores"), number(r"(\d+) bytes smem")


def main() -> None:
    """Write the table."""
    if shutil.which("ptxas") is None:
        sys.exit("error: no ptxas here\n  fix: put the bin folder of a CUDA toolkit on PATH")
    head = "| kernel (its arrays) | registers | spilled bytes | shared bytes |\n| --- | --- | --- | --- |\n"
    table = head + "".join(f"{row}\n" for row in rows_of_table())
    PAGE.write_text(_TABLE.sub(lambda _: table, PAGE.read_text()))


if __name__ == "__main__":
    main()
