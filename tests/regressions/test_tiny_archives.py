"""Archives too small to be one are wrong data, not a failing disk."""

from __future__ import annotations

import pytest

from graphprep.convert.pipeline import convert
from graphprep.model.errors import DataError
from graphprep.model.options.convert import ConvertOptions


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"PK\x03\x04", "the archive cannot be read: File is not a zip file"),
        (b"PK\x03\x04abc", "the archive cannot be read: File is not a zip file"),
        (b"PK\x05\x06" + bytes(18), "the archive holds no array"),
    ],
)
def test_tiny_archives(tmp_path, data, words):
    path = tmp_path / "a.npz"
    path.write_bytes(data)
    with pytest.raises(DataError) as caught:
        convert([str(path)], str(tmp_path / "store"), ConvertOptions(format="arrays"))
    assert (caught.value.place, caught.value.message) == (str(path), words)
    assert not (tmp_path / "store").exists()
