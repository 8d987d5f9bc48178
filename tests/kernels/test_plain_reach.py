"""The scanners of plain lines look at no more than what PADDING allows: behind it, there is a page that must not be read."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = r"""
import ctypes, mmap
import numpy as np
from graphprep.decoders.deepgnn.edgelist import EdgeListDecoder
from graphprep.decoders.deepgnn.tsv import _plain_grammar
from graphprep.kernels.cpu.deepgnn import plain_edgelist, plain_json, plain_rows, plain_tsv

SIZE = 1 << 16
pages = mmap.mmap(-1, SIZE + mmap.PAGESIZE)
base = ctypes.addressof(ctypes.c_char.from_buffer(pages))
protect = ctypes.CDLL(None, use_errno=True).mprotect
assert protect(ctypes.c_void_p(base + SIZE), mmap.PAGESIZE, 0) == 0

room = plain_rows.make_room(1000, 1000, 5000, 5000, False)
neighbors = plain_json.make_neighbors(1000)
grammar = EdgeListDecoder()._plain_grammar
scans = {
    "edgelist": lambda buf, last, progress: plain_edgelist.scan(buf, last, grammar, room, progress),
    "json": lambda buf, last, progress: plain_json.scan(buf, last, np.inf, room, neighbors, progress),
    "tsv": lambda buf, last, progress: plain_tsv.scan(buf, last, np.inf, 0.0, _plain_grammar(), room, progress),
}
lines = {
    "edgelist": ["1,-1,0,1.5,float32,2,0.25,1234567.5", "1,0,2,0.5", "12345678901,1,98765432109,123.5,float64,1,1e-300"],
    "json": [
        '{"node_id": 1, "node_type": 0, "node_weight": 1.5, "float_feature": {"0": [1, 2.5, 0.1234567]}, "edge": []}',
        '{"node_id": 1, "node_type": 0, "node_weight": 1, "edge": [{"src_id": 1, "dst_id": 2, "edge_type": 0, "weight": 0.5}]}',
        '{"node_id": 1, "node_type": 0, "node_weight": 1, "neighbor": {"0": {"7": 1}}, "binary_feature": {"1": "text"}}',
    ],
    "tsv": ["1\t0\t1.5\tf:0.25 1234567.5;b:text\t2,0,0.5|12345678901,1,123.5", "7"],
}
digits = "1" * 40
many = {
    "edgelist": [digits, f"1,{digits}", f"1,0,{digits}", f"1,0,2,{digits}", f"1,0,2,0.{digits}", f"1,-1,0,1,float32,1,0.{digits}"],
    "json": [
        *(f'{{"node_id": {digits}', f'{{"node_weight": 0.{digits}', f'{{"neighbor": {{"0": {{"{digits}', f'{{"neighbor": {{"{digits}'),
        *(f'{{"edge": [{{"src_id": 1, "dst_id": 2, "edge_type": 0, "weight": {sign}{digits}' for sign in ("", "0.", "-1.")),
        *(f'{{"edge": [{{"src_id": {ends}' for ends in (digits, f'1, "dst_id": {digits}', f'1, "dst_id": 1, "edge_type": {digits}')),
    ],
    "tsv": [digits, f"1\t{digits}", f"1\t0\t{digits}", f"1\t0\t1\tf:0.{digits}", f"1\t0\t1\t\t2,0,0.{digits}"],
}
for name, scan in scans.items():
    for line in lines[name] + many[name]:
        for cut in range(len(line) + 1):  # whatever a line breaks off at: then it is odd, or is read
            text = (line[:cut] + "\n").encode() + plain_rows.PADDING
            at = SIZE - len(text)
            pages[at:SIZE] = text
            buf = np.frombuffer(pages, np.uint8, len(text), at)
            room.buckets.fill(-1)
            progress = np.zeros(plain_rows.NUM_PROGRESS, np.int64)
            code = scan(buf, len(text) - len(plain_rows.PADDING), progress)
            whole = cut == len(line) and line in lines[name]
            assert code == plain_rows.DONE if whole else code in (plain_rows.DONE, plain_rows.ODD), (name, line[:cut], code)
print("stayed inside")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs mprotect")
def test_scanners_stay_inside_the_padding():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert done.stdout == "stayed inside\n", done.stderr
