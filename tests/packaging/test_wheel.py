"""The sdist and the wheel of it build; the wheel alone, in a fresh environment and another folder, writes the golden bytes."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
from golden.golden_cases import read_store

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


def run(command: list[str], cwd: Path) -> str:
    done = subprocess.run(command, check=False, cwd=cwd, capture_output=True, text=True, timeout=600)
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
    flags = ["--weight-col", "weight", "--relation", "knows", "--index-dtype", "int64"]
    run([str(graphprep), "convert", str(sample), "store", "--format", "edges", *flags], cwd=tmp_path)
    run([str(graphprep), "validate", "store"], cwd=tmp_path)
    assert read_store(tmp_path / "store") == read_store(ROOT / "tests/golden/karate_csv/store")
    assert run([str(python), "-m", "graphprep", "--version"], cwd=tmp_path).strip()
