"""The wheel's build. With GRAPHPREP_WHEEL_KERNELS the wheel brings the kernels' machine code, and is one of this platform.

The variable names levels of processors (``x86-64-v2 x86-64-v3``), or says ``all``: those that this machine has; which it lacks
is said on stderr. The object files need neither the C library nor Python, so the tag names the oldest that pip knows.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LEVELS = ("x86-64-v2", "x86-64-v3", "x86-64-v4")


def tell_missing(names: list[str]) -> None:
    """Say of which levels of x86-64 the wheel brings no code, where this machine lacks some."""
    missing = [level for level in LEVELS if level not in names]
    if missing and platform.machine() in {"x86_64", "AMD64"}:
        sys.stderr.write(f"this machine does not run code for {', '.join(missing)}: the wheel brings none\n")


class CustomBuildHook(BuildHookInterface[Any]):
    """Compiles the kernels that signatures.txt names."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the code to the wheel's files."""
        names = os.environ.get("GRAPHPREP_WHEEL_KERNELS", "").split()
        if self.target_name != "wheel" or version == "editable" or not names:
            return
        sys.path.insert(0, self.root)
        from graphprep.engine.budget import compiling_jobs
        from graphprep.kernels.compiler import levels, manage

        folder = Path(self.directory) / "kernels"
        shutil.rmtree(folder, ignore_errors=True)
        if names == ["all"]:
            names = list(levels.of_this_processor())
            tell_missing(names)
        manage.build_levels(names, folder, compiling_jobs(), lambda num, of: None)
        build_data["force_include"][str(folder)] = "graphprep/kernels/shipped"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-manylinux_2_17_{platform.machine()}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Leave nothing but the wheel."""
        shutil.rmtree(Path(self.directory) / "kernels", ignore_errors=True)
