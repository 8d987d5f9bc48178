"""Measure codecs for spilled edges: ``python benchmarks/spill.py EDGES.txt [--folder DIR] [--megabytes N]``.

Edges are scattered to buckets as ``convert`` does it, in batches; every bucket's share of a batch is an extent, and each codec
takes the same extents. Printed are bytes an edge, the MB/s of raw records (12 bytes: owner, other end, edge ID) that one core
encodes and decodes, those that the disk writes (fdatasync included) and reads again (page cache dropped), and the seconds that
100 M edges take there and back when one core and the disk take turns. Every codec's output is decoded and compared.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numba import njit

_RAW_BYTES = 12
_ROUNDS = 3


@dataclass(frozen=True)
class Extents:
    """Records uint32[n, 3] (owner inside its bucket, other end, edge ID, ascending), and how many bits each field needs."""

    pieces: list[Any]
    bits: tuple[int, int, int]


@dataclass(frozen=True)
class Codec:
    """A name, and how to encode and decode an extent; ``ids`` False: edge IDs are not kept."""

    name: str
    encode: Callable[[Any, Extents], Any]
    decode: Callable[[Any, Extents, int], Any]
    ids: bool = True


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description="Measure codecs for spilled edges.")
    parser.add_argument("edges", help="lines of two numbers")
    parser.add_argument("--folder", help="where the spill files are written", default=None)
    parser.add_argument("--megabytes", type=int, default=96, help="raw records to measure")
    parser.add_argument("--batch", type=int, default=1 << 20, help="edges scattered at a time")
    parser.add_argument("--buckets", type=int, default=64)
    args = parser.parse_args()
    extents = make_extents(args.edges, args.megabytes * 10**6 // _RAW_BYTES, args.batch, args.buckets)
    num_edges = sum(len(piece) for piece in extents.pieces)
    print(f"{num_edges:,} edges, {len(extents.pieces)} extents, bits of owner, other, ID: {extents.bits}")
    print(f"{'codec':<24}{'B/edge':>8}{'encode':>10}{'decode':>10}{'write':>8}{'read':>8}{'s/100M':>8}")
    for codec in CODECS:
        print(measure(codec, extents, num_edges, args.folder), flush=True)


def make_extents(path: str, num_edges: int, batch: int, buckets: int) -> Extents:
    """Read edges, and scatter them."""
    import pyarrow.csv as csv

    options = csv.ReadOptions(column_names=["src", "dst"], block_size=1 << 24)
    columns: list[Any] = [[], []]
    with csv.open_csv(path, read_options=options, parse_options=csv.ParseOptions(delimiter=" ")) as reader:
        for read in reader:
            for column, array in zip(columns, read.columns, strict=True):
                column.append(array.to_numpy())
            if sum(map(len, columns[0])) >= num_edges:
                break
    src, dst = (np.concatenate(column)[:num_edges].astype(np.uint32) for column in columns)
    shift = max(1, (int(max(src.max(), dst.max())) + 1).bit_length() - (buckets - 1).bit_length())
    pieces = []
    for first in range(0, len(src), batch):
        owners, others = dst[first : first + batch], src[first : first + batch]
        ids = np.arange(first, first + len(owners), dtype=np.uint32)
        records = np.column_stack([owners & np.uint32((1 << shift) - 1), others, ids])
        order = np.argsort(owners >> shift, kind="stable")
        cuts = np.flatnonzero(np.diff((owners >> shift)[order])) + 1
        pieces += [np.ascontiguousarray(piece) for piece in np.split(records[order], cuts)]
    highest = [int(max(piece[:, column].max() for piece in pieces)).bit_length() for column in range(3)]
    return Extents(pieces, (highest[0], highest[1], highest[2]))


def measure(codec: Codec, extents: Extents, num_edges: int, folder: str | None) -> str:
    """Measure one codec: the best of some rounds."""
    best = [float("inf")] * 4
    encoded: list[Any] = []
    for _ in range(_ROUNDS):
        start = time.thread_time()
        encoded = [codec.encode(piece, extents) for piece in extents.pieces]
        encode_s = time.thread_time() - start
        start = time.thread_time()
        decoded = [codec.decode(data, extents, len(piece)) for data, piece in zip(encoded, extents.pieces, strict=True)]
        decode_s = time.thread_time() - start
        for found, piece in zip(decoded, extents.pieces, strict=True):
            assert (np.asarray(found).reshape(len(piece), -1) == (piece if codec.ids else piece[:, :2])).all(), codec.name
        best = [min(pair) for pair in zip(best, (encode_s, decode_s, *_through_disk(encoded, folder)), strict=True)]
    raw = num_edges * _RAW_BYTES / 1e6
    num_bytes = sum(memoryview(data).nbytes for data in encoded)
    total = sum(best) * 1e8 / num_edges
    rates = "".join(f"{raw / seconds:>{width}.0f}" for seconds, width in zip(best, (10, 10, 8, 8), strict=True))
    return f"{codec.name:<24}{num_bytes / num_edges:>8.2f}{rates}{total:>8.1f}"


def _through_disk(encoded: list[Any], folder: str | None) -> tuple[float, float]:
    """Return the seconds to write and to read again."""
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        start = time.perf_counter()
        for data in encoded:
            file.write(data)
        os.fdatasync(file.fileno())
        write_s = time.perf_counter() - start
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        target = bytearray(1 << 20)
        file.seek(0)
        start = time.perf_counter()
        while file.readinto(target):
            pass
        return write_s, time.perf_counter() - start


# ---- codecs


def _arrow(name: str, *, columns: bool) -> Codec:
    """Compress records as they are or, with ``columns``, field after field."""
    codec = pa.Codec(name)

    def encode(piece: Any, _: Extents) -> Any:
        return codec.compress(np.ascontiguousarray(piece.T) if columns else piece, asbytes=True)

    def decode(data: Any, _: Extents, num_rows: int) -> Any:
        flat = np.frombuffer(codec.decompress(data, num_rows * _RAW_BYTES), np.uint32)
        return flat.reshape(3, num_rows).T if columns else flat.reshape(num_rows, 3)

    return Codec(f"{name}{', by field' if columns else ''}", encode, decode)


def _encode_word(piece: Any, extents: Extents) -> Any:
    out = np.empty(len(piece), np.uint64)
    _pack_words(piece, extents.bits[1], extents.bits[2], out)
    return out


def _decode_word(data: Any, extents: Extents, num_rows: int) -> Any:
    out = np.empty((num_rows, 3), np.uint32)
    _unpack_words(data, extents.bits[1], extents.bits[2], out)
    return out


@njit(cache=True, nogil=True)
def _pack_words(piece, other_bits, id_bits, out):
    for i in range(piece.shape[0]):
        out[i] = (
            (np.uint64(piece[i, 0]) << np.uint64(other_bits + id_bits))
            | (np.uint64(piece[i, 1]) << np.uint64(id_bits))
            | np.uint64(piece[i, 2])
        )


@njit(cache=True, nogil=True)
def _unpack_words(words, other_bits, id_bits, out):
    other_mask = (np.uint64(1) << np.uint64(other_bits)) - np.uint64(1)
    id_mask = (np.uint64(1) << np.uint64(id_bits)) - np.uint64(1)
    for i in range(words.shape[0]):
        out[i, 0] = words[i] >> np.uint64(other_bits + id_bits)
        out[i, 1] = (words[i] >> np.uint64(id_bits)) & other_mask
        out[i, 2] = words[i] & id_mask


def _encode_bytes(piece: Any, extents: Extents) -> Any:
    """Pack both ends into whole bytes, and drop the IDs."""
    width = -(-(extents.bits[0] + extents.bits[1]) // 8)
    out = np.empty(len(piece) * width, np.uint8)
    _pack_ends(piece, extents.bits[1], width, out)
    return out


def _decode_bytes(data: Any, extents: Extents, num_rows: int) -> Any:
    out = np.empty((num_rows, 2), np.uint32)
    _unpack_ends(data, extents.bits[1], -(-(extents.bits[0] + extents.bits[1]) // 8), out)
    return out


@njit(cache=True, nogil=True)
def _pack_ends(piece, other_bits, width, out):
    at = 0
    for i in range(piece.shape[0]):
        word = (np.uint64(piece[i, 0]) << np.uint64(other_bits)) | np.uint64(piece[i, 1])
        for k in range(width):
            out[at + k] = np.uint8(word >> np.uint64(8 * k))
        at += width


@njit(cache=True, nogil=True)
def _unpack_ends(data, other_bits, width, out):
    mask = (np.uint64(1) << np.uint64(other_bits)) - np.uint64(1)
    at = 0
    for i in range(out.shape[0]):
        word = np.uint64(0)
        for k in range(width):
            word |= np.uint64(data[at + k]) << np.uint64(8 * k)
        at += width
        out[i, 0] = word >> np.uint64(other_bits)
        out[i, 1] = word & mask


def _encode_delta(piece: Any, extents: Extents) -> Any:
    """Pack both ends into whole bytes; of an ID, which ascend, only the step from the one before, in bytes of seven bits."""
    width = -(-(extents.bits[0] + extents.bits[1]) // 8)
    out = np.empty(len(piece) * (width + 5), np.uint8)
    return out[: _pack_delta(piece, extents.bits[1], width, out)]


def _decode_delta(data: Any, extents: Extents, num_rows: int) -> Any:
    out = np.empty((num_rows, 3), np.uint32)
    _unpack_delta(data, extents.bits[1], -(-(extents.bits[0] + extents.bits[1]) // 8), out)
    return out


@njit(cache=True, nogil=True)
def _pack_delta(piece, other_bits, width, out):
    at = 0
    last = np.uint64(0)
    for i in range(piece.shape[0]):
        word = (np.uint64(piece[i, 0]) << np.uint64(other_bits)) | np.uint64(piece[i, 1])
        for k in range(width):
            out[at + k] = np.uint8(word >> np.uint64(8 * k))
        at += width
        step = np.uint64(piece[i, 2]) - last
        last = np.uint64(piece[i, 2])
        while step >= np.uint64(128):
            out[at] = np.uint8(step & np.uint64(127)) | np.uint8(128)
            step >>= np.uint64(7)
            at += 1
        out[at] = np.uint8(step)
        at += 1
    return at


@njit(cache=True, nogil=True)
def _unpack_delta(data, other_bits, width, out):
    mask = (np.uint64(1) << np.uint64(other_bits)) - np.uint64(1)
    at = 0
    last = np.uint64(0)
    for i in range(out.shape[0]):
        word = np.uint64(0)
        for k in range(width):
            word |= np.uint64(data[at + k]) << np.uint64(8 * k)
        at += width
        out[i, 0] = word >> np.uint64(other_bits)
        out[i, 1] = word & mask
        shift = np.uint64(0)
        while data[at] & np.uint8(128):
            last += np.uint64(data[at] & np.uint8(127)) << shift
            shift += np.uint64(7)
            at += 1
        last += np.uint64(data[at]) << shift
        at += 1
        out[i, 2] = last


CODECS = (
    Codec("raw", lambda piece, _: piece, lambda data, _, __: data),
    Codec("one word of 8 bytes", _encode_word, _decode_word),
    Codec("ends, steps of IDs", _encode_delta, _decode_delta),
    Codec("ends without IDs", _encode_bytes, _decode_bytes, ids=False),
    _arrow("lz4_raw", columns=False),
    _arrow("lz4_raw", columns=True),
    _arrow("snappy", columns=True),
    _arrow("zstd", columns=True),
)

if __name__ == "__main__":
    main()
