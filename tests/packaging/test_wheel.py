"""The wheel and the sdist build; the wheel alone, in a fresh environment and another folder, converts and validates."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.heavy, pytest.mark.xdist_group("wheel")]
ROOT = Path(__file__).resolve().parent.parent.parent
SOURCES = ("graphprep", "schemas", "docs", "sample_data", "tests")
FILES = ("pyproject.toml", "hatch_build.py", "README.md", "CHANGELOG.md", "LICENSE", "Makefile", ".gitignore")


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """A folder with the sdist, and the wheel made from it. Built from a copy, so that nothing is left in the tree."""
    copy, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    ignored = shutil.ignore_patterns("__pycache__", "*.nbi", "*.nbc", ".hypothesis")
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name, ignore=ignored)
    for name in FILES:
        shutil.copy(ROOT / name, copy / name)
    run([sys.executable, "-m", "build", "--outdir", str(out), str(copy)], cwd=out)
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


def test_sdist_holds_the_sources_and_tests(built):
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    assert {"pyproject.toml", "LICENSE", "graphprep/convert/pipeline.py", "tests/conftest.py", "sample_data/README.md"} <= names
    assert {f"schemas/{path.name}" for path in (ROOT / "schemas").glob("*.json")} <= names


def test_the_wheel_alone_converts_and_validates(built, tmp_path):
    (wheel,) = built.glob("*.whl")
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=True)
    python, graphprep = environment / "bin/python", environment / "bin/graphprep"
    run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel)], cwd=tmp_path)
    sample = tmp_path / "karate.csv"
    shutil.copy(ROOT / "sample_data/karate/karate.csv", sample)
    run([str(graphprep), "convert", str(sample), "store", "--weight-col", "weight"], cwd=tmp_path)
    run([str(graphprep), "validate", "store"], cwd=tmp_path)
    assert run([str(python), "-m", "graphprep", "--version"], cwd=tmp_path).strip()
