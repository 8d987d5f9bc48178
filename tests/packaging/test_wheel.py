"""The sdist and the wheel of it build; the wheel alone, in a fresh environment and another folder, writes the golden bytes."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
from golden.golden_cases import read_store

from graphprep.kernels.compiler import levels

pytestmark = [pytest.mark.slow, pytest.mark.heavy, pytest.mark.xdist_group("wheel")]
ROOT = Path(__file__).resolve().parent.parent.parent
NOT_COPIED = (
    "__pycache__",
    "*.nbi",
    "*.nbc",
    ".hypothesis",
    "shipped",
    ".git",
    ".ci",
    ".*_cache",
    ".venv",
    ".mutants",
    ".benchmarks",
)
OUTPUTS = ("/build", "/dist", "/out", "/site")
FLAGS = ["--format", "edges", "--weight-col", "weight", "--relation", "knows", "--index-dtype", "int64"]  # of karate_csv
KERNELS = {  # small ones, which converting karate.csv calls
    "edges.place._count": "u4[1] i8 u4[1]",
    "ids.group._mark": "u1[1] u4[1]",
    "text.pairs.count_lines": "u1[1] i8 i8",
}


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Path:
    """A copy of the tree, so that nothing is left in it."""
    copy = tmp_path_factory.mktemp("a source") / "graphprep"

    def ignored(folder: str, names: list[str]) -> set[str]:
        outputs = {name for name in names if f"{folder.removeprefix(str(ROOT))}/{name}" in OUTPUTS}
        return outputs | set(shutil.ignore_patterns(*NOT_COPIED)(folder, names))

    shutil.copytree(ROOT, copy, ignore=ignored)
    return copy


@pytest.fixture(scope="module")
def built(source, tmp_path_factory) -> Path:
    """A folder with the sdist, and the wheel made from it."""
    out = tmp_path_factory.mktemp("dist")
    run([sys.executable, "-m", "build", "--outdir", str(out), str(source)], cwd=out)
    return out


@pytest.fixture(scope="module")
def level() -> str:
    """The lowest level of processors of which graphprep ships code, and this machine runs it."""
    if not levels.of_this_processor():
        pytest.skip("graphprep ships no code for this processor")
    return levels.of_this_processor()[-1]


@pytest.fixture(scope="module")
def platform_wheel(source, level, tmp_path_factory) -> Path:
    """The wheel with machine code, of a tree that lists but three kernels."""
    made = tmp_path_factory.mktemp("of this platform")
    shutil.copytree(source, made / "tree")
    lines = [f"{kernel} {types}\n" for kernel, types in KERNELS.items()]
    (made / "tree/graphprep/kernels/compiler/signatures.txt").write_text("".join(lines))
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(made / "dist"), str(made / "tree")]
    run(command, made, PYTHONPATH="", GRAPHPREP_WHEEL_KERNELS=level)
    (wheel,) = (made / "dist").iterdir()
    return wheel


def run(command: list[str], cwd: Path, **variables: str) -> str:
    environment = os.environ | variables
    done = subprocess.run(command, check=False, cwd=cwd, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_wheel_holds_the_package_and_its_schemas(built):
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert "graphprep/convert/pipeline.py" in names
    assert "graphprep/py.typed" in names
    schemas = {f"graphprep/schemas/{path.name}" for path in (ROOT / "schemas").glob("*.json")}
    assert schemas and schemas <= set(names)
    assert any(name.endswith("/licenses/LICENSE") for name in names)
    assert not [name for name in names if not name.startswith(("graphprep/", "graphprep-"))]


def test_sdist_holds_every_file_of_the_tree(source, built):
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {member.name.split("/", 1)[1] for member in archive if member.isfile()}
    assert {"graphprep/convert/pipeline.py", "tests/conftest.py", "sample_data/README.md", "CONTRIBUTING.md"} <= names
    tree = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}
    assert names == {path for path in tree if "__pycache__" not in path} | {"PKG-INFO"}  # the build itself leaves one


def test_the_wheel_alone_converts_to_the_golden_bytes(built, tmp_path):
    (wheel,) = built.glob("*-py3-none-any.whl")
    environment = tmp_path / "an environment"
    venv.create(environment, with_pip=True)
    python, graphprep = environment / "bin/python", environment / "bin/graphprep"
    run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel)], cwd=tmp_path)
    sample = tmp_path / "karate.csv"
    shutil.copy(ROOT / "sample_data/karate/karate.csv", sample)
    run([str(graphprep), "convert", str(sample), "store", *FLAGS], cwd=tmp_path)
    run([str(graphprep), "validate", "store"], cwd=tmp_path)
    assert read_store(tmp_path / "store") == read_store(ROOT / "tests/golden/karate_csv/store")
    assert run([str(python), "-m", "graphprep", "--version"], cwd=tmp_path).strip()


def test_a_wheel_of_a_platform_holds_the_code_of_the_listed_kernels(platform_wheel, level):
    tag = f"py3-none-manylinux_2_17_{platform.machine()}"
    assert platform_wheel.name.endswith(f"-{tag}.whl")
    with zipfile.ZipFile(platform_wheel) as archive:
        names = archive.namelist()
        (about,) = [name for name in names if name.endswith(".dist-info/WHEEL")]
        assert {f"Tag: {tag}", "Root-Is-Purelib: false"} <= set(archive.read(about).decode().splitlines())
    code = [Path(name) for name in names if name.startswith("graphprep/kernels/shipped/")]
    assert {path.parent.as_posix() for path in code} == {f"graphprep/kernels/shipped/{level}"}
    assert {path.suffix for path in code} == {".kernel"}
    assert sorted(path.stem.rpartition("-")[0] for path in code) == sorted(KERNELS)


def test_the_code_that_a_wheel_brings_is_used_and_writes_the_golden_bytes(platform_wheel, level, tmp_path):
    """Unpacked, before any other graphprep; what it does not bring is compiled and kept, and nothing else."""
    unpacked, kept = tmp_path / "unpacked", tmp_path / "kept"
    kept.mkdir(mode=0o700)
    with zipfile.ZipFile(platform_wheel) as archive:
        archive.extractall(unpacked)
    there = {"PYTHONPATH": str(unpacked), "NUMBA_CACHE_DIR": str(kept), "GRAPHPREP_CPU": level}
    homes = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    graphprep = [sys.executable, "-m", "graphprep"]
    listed = json.loads(run([*graphprep, "kernels", "list", "--json"], tmp_path, **there, **homes))
    assert {one["kernel"]: one["types"] for one in listed} == KERNELS
    assert [one["place"] for one in listed] == ["packaged"] * len(KERNELS)
    run([*graphprep, "convert", str(ROOT / "sample_data/karate/karate.csv"), "store", *FLAGS], tmp_path, **there, **homes)
    assert read_store(tmp_path / "store") == read_store(ROOT / "tests/golden/karate_csv/store")
    compiled = {path.stem.rpartition("-")[0] for path in kept.glob("*.kernel")}
    assert compiled and not compiled & KERNELS.keys()
