"""What the hook of the wheel's build compiles, and says of what it does not."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from graphprep.kernels.compiler import levels, manage

pytest.importorskip("hatchling")
ROOT = Path(__file__).resolve().parent.parent.parent
V2, V3, V4 = levels._FEATURES


@pytest.fixture
def hook():
    """The module hatch_build.py."""
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def built(hook, monkeypatch, tmp_path):
    """Return a function that builds a wheel on a machine with some levels, and returns those that it has code for."""

    def build(kernels, machine, has):
        asked = []
        monkeypatch.setenv("GRAPHPREP_WHEEL_KERNELS", kernels)
        monkeypatch.setattr(sys, "path", [*sys.path])
        monkeypatch.setattr(hook.platform, "machine", lambda: machine)
        monkeypatch.setattr(levels, "of_this_processor", lambda: has)
        monkeypatch.setattr(manage, "build_levels", lambda names, *_: asked.extend(names))
        hook.CustomBuildHook(str(ROOT), {}, None, None, str(tmp_path), "wheel").initialize("standard", {"force_include": {}})
        return asked

    return build


def test_the_hook_knows_every_level(hook):
    assert [*hook.LEVELS] == [V2, V3, V4]


@pytest.mark.parametrize(
    ("kernels", "machine", "has", "names", "told"),
    [
        ("all", "x86_64", (V4, V3, V2), [V4, V3, V2], ""),
        ("all", "x86_64", (V3, V2), [V3, V2], V4),
        ("all", "x86_64", (V2,), [V2], f"{V3}, {V4}"),
        ("all", "aarch64", ("aarch64",), ["aarch64"], ""),
        (V2, "x86_64", (V3, V2), [V2], ""),  # what is named is meant
        ("", "x86_64", (V3, V2), [], ""),
    ],
)
def test_levels_that_this_machine_lacks_are_told(kernels, machine, has, names, told, built, capsys):
    assert built(kernels, machine, has) == names
    line = f"this machine does not run code for {told}: the wheel brings none\n" if told else ""
    assert capsys.readouterr() == ("", line)
