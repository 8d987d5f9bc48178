"""What rewrites a store makes none of one whose bytes are not those that its manifests name."""

from __future__ import annotations

import pytest
import xxhash

import graphprep
from graphprep.model.errors import DataError

COMMANDS = {
    "reorder": lambda store, out: graphprep.reorder(store, out, by="degree"),
    "partition": lambda store, out: graphprep.partition(store, out, by="hash", partitions=3),
    "split": lambda store, out: graphprep.split(store, out, (0.5, 0.5), by="nodes"),
    "transform": lambda store, out: graphprep.transform(store, out, "reverse"),
    "transform twice": lambda store, out: graphprep.transform(store, out, "to-simple sum filter-degree 1:"),
}
PATHS = (
    "part-00001/nodes/user/data/age.npy",
    "part-00000/nodes/user/raw_ids.npy",
    "part-00001/edges/user__buys__item/csc/indices.npy",
    "part-00001/edges/user__buys__item/weight.npy",
)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("path", PATHS)
def test_a_flipped_bit_is_found(path, command, tmp_path):
    (tmp_path / "user.csv").write_text("id,age\n" + "".join(f"{7 * i},{20 + i}\n" for i in range(30)))
    (tmp_path / "buys.csv").write_text("src,dst,weight\n" + "".join(f"{7 * (i % 30)},{i % 11},{i}.5\n" for i in range(90)))
    graphprep.convert(
        nodes={"user": tmp_path / "user.csv"},
        edges={"user:buys:item": tmp_path / "buys.csv"},
        out=tmp_path / "store",
        decoder_options={"weight_col": "weight"},
        partitions=2,
    )
    COMMANDS[command](tmp_path / "store", tmp_path / "whole")
    assert graphprep.validate(tmp_path / "whole").sound
    file = tmp_path / "store" / path
    data = bytearray(file.read_bytes())
    wanted = xxhash.xxh3_64_hexdigest(data)
    data[-8] ^= 1
    file.write_bytes(data)
    with pytest.raises(DataError) as error:
        COMMANDS[command](tmp_path / "store", tmp_path / "out")
    if "indices" not in path and "raw_ids" not in path:  # those may be out of range, which is told before
        assert error.value.message == (
            f"the bytes are not those that were written: expected xxh3 {wanted} (manifest), found {xxhash.xxh3_64_hexdigest(data)}"
        )
        assert error.value.place == str(file)
        assert error.value.fix == "convert the graph again, or copy the store again"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["buys.csv", "store", "user.csv", "whole"]
