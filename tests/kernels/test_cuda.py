"""Device kernels without a device: simulated, compiled, found or not, and what a missing barrier does."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import warnings
import weakref
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from run_simulated import LARGE, ROOT, run_simulated, shipped_names

from graphprep.kernels.cuda.probe import NoDevice, explain

SUITES = tuple(f"tests/kernels/test_{name}.py" for name in ("kernels_contract", "resident", "halved"))
MISSING_PARTS = ("libnvvm cannot be found", "failure finding", "missing libdevice")  # not: what libnvvm itself complains of


@pytest.mark.heavy
def test_the_contract_holds_on_the_simulator(record_property, monkeypatch, tmp_path):
    monkeypatch.setenv("GRAPHPREP_LAUNCHES", str(tmp_path / "launches"))
    printed = run_simulated("pytest", "-q", "-p", "no:cacheprovider", *SUITES)
    (passed,) = re.findall(r"^the contract of kernels: simulated (\d+) passed$", printed, re.M)
    record_property("simulated kernels", passed)
    assert int(passed) > 200
    launched = set((tmp_path / "launches").read_text().splitlines())
    assert (launched - shipped_names(), set(LARGE) - launched) == (set(), set())


@pytest.mark.heavy
def test_every_barrier_is_needed_where_it_stands():
    """Each is taken out, and moved before or behind the statement beside it where that touches shared memory."""
    printed = run_simulated("tests/kernels/barriers.py")
    tried, missed = re.findall(r"^(\d+) mistakes, (\d+) not seen", printed, re.M)[0]
    assert int(missed) == 0, printed
    barriers = sum(path.read_text().count("cuda.syncthreads()") for path in (ROOT / "graphprep/kernels/cuda").glob("*.py"))
    assert int(tried) > 2 * barriers > 30


def device_kernels():
    """The script that compiles every kernel."""
    spec = importlib.util.spec_from_file_location("device_kernels", ROOT / "docs/device_kernels.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.heavy
def test_every_kernel_compiles_for_every_signature():
    from graphprep.kernels.cuda.signatures import shipped

    script, compiled = device_kernels(), 0
    for kernel, types in shipped():
        try:
            found = dict(script.compile_to_ptx(kernel, types))
        except Exception as error:
            if not compiled and any(part in str(error).lower() for part in MISSING_PARTS):
                pytest.skip(f"no libnvvm: {' '.join(str(error).split())[:200]}")
            raise
        assert list(found) == [(8, 0), (9, 0), (10, 0)]
        for (major, minor), ptx in found.items():
            assert f".target sm_{major}{minor}\n" in ptx
            assert ".visible .entry" in ptx
            assert (re.search(r"\b(atom|red)\.", ptx) is not None) == (kernel.__name__ == "count_digits"), "order would show"
            assert ".local" not in ptx.split(".visible .entry")[1], "arrays of a thread must be registers"
        compiled += 1
    assert compiled > 50


def test_the_table_of_the_docs_has_every_kernel_and_signature():
    from graphprep.kernels.cuda.signatures import shipped

    script = device_kernels()
    rows = re.findall(r"^\| (\w+\(.*?\)) \| [\d /]+ \| [\d /]+ \| [\d /]+ \|$", script.PAGE.read_text(), re.M)
    assert rows == [script.name_of(*one) for one in shipped()]


def test_every_kernel_is_shipped():
    """What is launched must have been compiled ahead: one of these signatures."""
    from graphprep.kernels.cuda import elements, radix, rows, scan
    from graphprep.kernels.cuda.signatures import SHIPPED

    sources = "".join(Path(module.__file__).read_text() for module in (scan, radix, rows, elements))
    assert sources.count("@device_kernel\n") == len(SHIPPED)


def test_few_blocks_are_run_without_a_warning(monkeypatch):
    from numba.core.errors import NumbaPerformanceWarning
    from numba.cuda.dispatcher import _LaunchConfiguration

    from graphprep.kernels.cuda.frontend import launch
    from graphprep.kernels.cuda.rows import count_up

    run = []
    monkeypatch.setattr(_LaunchConfiguration, "__call__", lambda self, *given: run.append((self.griddim, given)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        launch(count_up, 5, 0, "array")
    assert run == [((5, 1, 1), ("array",))]
    with pytest.warns(NumbaPerformanceWarning, match="Grid size 6"):  # a user's own are not silenced
        count_up[6, 256]


def test_a_device_kernel_runs_where_others_may_write_to_its_cache(monkeypatch, tmp_path):
    import numba

    from graphprep.kernels.cuda import rows
    from graphprep.kernels.cuda.frontend import device_kernel

    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "kept"))
    (tmp_path / "kept").mkdir(mode=0o700)
    kept = device_kernel(rows.count_up.py_func)._cache
    assert type(kept).__name__ == "CUDACache"
    Path(kept._cache_path).mkdir(exist_ok=True)
    Path(kept._cache_path).chmod(0o777)
    cache = device_kernel(rows.count_up.py_func)._cache
    assert type(cache).__name__ == "NullCache"
    assert cache.load_overload("signature", None) is None


class LateModule:
    """Is ``numba.cuda`` as far as memory goes: what nobody refers to any more is freed when ``deallocations`` are cleared."""

    def __init__(self):
        self.taken, self.most, self.pending = 0, 0, []
        self.deallocations = self

    def device_array(self, size, dtype):
        array = np.empty(size, dtype)
        self.taken += array.nbytes
        self.most = max(self.most, self.taken)
        weakref.finalize(array, self.pending.append, array.nbytes)
        return array

    pinned_array = device_array

    def current_context(self):
        return self

    def clear(self):
        while self.pending:
            self.taken -= self.pending.pop()

    def stream(self):
        return SimpleNamespace(synchronize=lambda: None)


@pytest.mark.parametrize("pinned", [False, True])
def test_a_buffer_that_grows_is_freed_before(pinned, monkeypatch):
    from graphprep.kernels.cuda import slots

    late = LateModule()
    monkeypatch.setattr(slots, "cuda", late)
    room = slots.Room(cap_bytes=4096, pinned_bytes=4096)
    for size in (1024, 2048, 3072, 4096):
        if pinned:
            room._pin("one", size, np.uint8)
        else:
            room.take("one", size, np.uint8)
    assert (late.most, late.taken) == (4096, 4096)
    room.clear()
    assert late.taken == 0


def test_the_command_line_and_the_cpu_import_nothing_of_cuda():
    code = (
        "import sys; sys.argv[1:] = ['--help']\n"
        "from graphprep.__main__ import main\n"
        "from graphprep.edges.device.find import find_kernels; find_kernels()\n"
        "import graphprep.kernels.cuda.probe\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "sys.exit(', '.join(n for n in sys.modules if n.startswith(('numba.cuda', 'numba_cuda', 'cuda'))) or 0)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr


def test_no_device_is_told_with_its_reason():
    from graphprep.kernels.cuda.probe import Device, find_device

    found = find_device()
    assert isinstance(found, Device) or found.reason
    code = "from graphprep.kernels.cuda.probe import find_device; print(find_device())"
    environment = os.environ | {"NUMBA_ENABLE_CUDASIM": "1"}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    fix = "unset NUMBA_ENABLE_CUDASIM"
    assert run.stdout.strip() == repr(NoDevice("NUMBA_ENABLE_CUDASIM is set: kernels would be simulated, not run", fix))
    code = "from graphprep.kernels.cuda.probe import find_device; print(find_device(7, simulated=True))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    assert run.stdout.strip() == repr(NoDevice("there is no device 7", "use one of cuda:0 simulator"))


@pytest.mark.parametrize(
    ("text", "reason", "fix"),
    [
        ("Error at driver init: \n\nCUDA driver library cannot be found.", "no NVIDIA driver is installed here", "install it"),
        ("[CUresult.CUDA_ERROR_NO_DEVICE] Call to cuInit results in", "the driver sees no device", "check nvidia-smi"),
        (
            "[222] Call to cuLinkAddData results in CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
            "the CUDA toolkit is newer than the driver ([222] Call to cuLinkAddData results in CUDA_ERROR_UNSUPPORTED_PTX_VERSION)",
            "pip install 'graphprep[cuda13]' for driver 580 or newer, else pip install 'graphprep[cuda12]'",
        ),
        (
            "[2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY",
            "no memory is left on the device: how much is free is not known",
            "end what else uses it",
        ),
        ("something else", "something else", "use --device cpu"),
    ],
)
def test_errors_of_the_driver_are_explained(text, reason, fix):
    found = explain(RuntimeError(text))
    assert found.reason == reason
    assert found.fix.startswith(fix)
