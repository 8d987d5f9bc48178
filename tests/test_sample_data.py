"""sample_data is what its script writes, stays small, and its README names every file's folder."""

from __future__ import annotations

import importlib.util
import sys
import zipfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest

WRITTEN_BY_HAND = {"README.md", "make.py", "demo.sh"}


def files_of(folder: Path) -> dict[str, Path]:
    inside = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {name: path for name, path in inside.items() if "__pycache__" not in name and name not in WRITTEN_BY_HAND}


def members_of(path: Path) -> dict[str, tuple[object, ...]]:
    with zipfile.ZipFile(path) as archive:
        return {one.filename: (one.date_time, one.compress_type, archive.read(one)) for one in archive.infolist()}


@pytest.fixture(scope="module")
def remade(tmp_path_factory) -> Path:
    pytest.importorskip("networkx")
    script = Path(__file__).resolve().parent.parent / "sample_data/make.py"
    spec = importlib.util.spec_from_file_location("make_sample_data", script)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    module.HERE = tmp_path_factory.mktemp("sample_data")
    module.main()
    return module.HERE


def test_the_script_writes_these_files(remade, sample_data):
    assert sorted(files_of(remade)) == sorted(files_of(sample_data))
    for name, path in files_of(sample_data).items():
        again = remade / name
        if path.suffix == ".parquet":  # holds the version of its writer
            assert pq.read_table(path).equals(pq.read_table(again)), name
        elif path.suffix == ".npz":  # its headers tell the version of Python's zipfile
            assert members_of(path) == members_of(again), name
        elif path.suffix not in (".gz", ".bz2", ".xz", ".zst"):  # other versions may compress better
            assert path.read_bytes() == again.read_bytes(), name


def test_it_is_small(sample_data):
    assert sum(path.stat().st_size for path in sample_data.rglob("*") if path.is_file()) < 300_000


def test_the_readme_names_every_folder_and_format(sample_data):
    text = (sample_data / "README.md").read_text()
    for name in files_of(sample_data):
        assert f"`{name.split('/')[0]}/" in text, name
