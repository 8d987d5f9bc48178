"""A run that was killed while it removed the store it had replaced leaves nothing that the next run does not remove."""

from __future__ import annotations

import pytest

from graphprep.storage.read.urls import Storage
from graphprep.storage.write import publish
from graphprep.storage.write.publish import StoreWriter

STORE = b'{"format": "graphprep-store", "parts": [{"path": "part-00000"}]}'


def write(out):
    with Storage() as storage, StoreWriter(storage, str(out), overwrite=True) as writer:
        writer.write_file("part-00000/nodes/n/x.npy", b"x")
        writer.write_file("part-00000/manifest.json", b'{"arrays": [{"path": "nodes/n/x.npy"}]}')
        writer.publish(STORE)


@pytest.mark.parametrize("exchanges", [True, False])
def test_what_is_left_of_a_replaced_store_goes_with_the_next_run(tmp_path, monkeypatch, exchanges):
    out = tmp_path / "store"
    write(out)
    with monkeypatch.context() as patch:
        if not exchanges:
            patch.setattr(publish, "_exchange", lambda left, right: False)
        patch.setattr(publish, "remove_files", lambda folder, names: True)  # nothing but the first step was done
        write(out)
    (left,) = [path for path in tmp_path.iterdir() if path != out]
    assert (left / "part-00000/nodes/n/x.npy").exists()
    write(out)
    assert [path.name for path in tmp_path.iterdir()] == ["store"]
    assert (out / "metadata.json").read_bytes() == STORE
