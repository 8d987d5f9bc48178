"""Binary files that are not read, by their first bytes: what each is, and how to make something that is read."""

from __future__ import annotations

import re
from dataclasses import dataclass

from graphprep.model.errors import DataError
from graphprep.storage.faults import display_url


@dataclass(frozen=True)
class Foreign:
    """A format that is not read: what it is, how to make something that is, and in which line it shows (0: everywhere)."""

    what: str
    fix: str
    line: int = 0

    def refusal(self, url: str) -> DataError:
        """Return what to raise for a file."""
        place = f"{display_url(url)}:{self.line}:1" if self.line else display_url(url)
        return DataError(f"this is {self.what}, which is not read", place=place, fix=self.fix)


_TRUSTED = ", which runs code of the file: do it with files you trust"
_TORCH = Foreign(
    "a file of torch.save",
    f"convert it in Python: graphprep.convert(torch.load(FILE, weights_only=False), OUT){_TRUSTED}",
)
_PICKLE = Foreign(
    "a pickle of Python", f"convert it in Python: graphprep.convert(pickle.load(open(FILE, 'rb')), OUT){_TRUSTED}"
)
_ZIP = Foreign("a zip archive", "unpack it, and name a file or the folder in it: unzip FILE -d FOLDER")
_SHEET = "save each sheet as CSV, and name these with --nodes and --edges"
_IN_TWO = "convert it in Python: graphprep.convert({}, OUT)"
# How the bytes of a file begin, and what it is.
_MAGICS: tuple[tuple[re.Pattern[bytes], Foreign], ...] = tuple(
    (re.compile(pattern, re.DOTALL), found)
    for pattern, found in (
        (rb"\x80[\x02-\x05]\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19", _TORCH),
        (rb"\x80[\x02-\x05]", _PICKLE),
        (
            rb"SQLite format 3\0",
            Foreign(
                "a SQLite database", "write its tables as CSV: sqlite3 -csv -header FILE 'SELECT * FROM TABLE' > TABLE.csv"
            ),
        ),
        (
            rb".{8}DUCK.\0{7}",  # its version in 64 bits
            Foreign("a DuckDB database", "write its tables as Parquet: duckdb FILE \"COPY TABLE TO 'TABLE.parquet'\""),
        ),
        (
            rb"\x89HDF\r\n\x1a\n",
            Foreign(
                "an HDF5 file",
                "save both ends of the edges in Python: file = h5py.File(FILE); "
                "numpy.savez('edges.npz', src=file[SRC][:], dst=file[DST][:])",
            ),
        ),
        (
            rb"MATLAB 5\.0 MAT-file",
            Foreign("a MATLAB file", _IN_TWO.format("scipy.io.loadmat(FILE)[NAME]") + " takes its sparse matrices"),
        ),
        (
            rb"\x3f\xa1\xb4\x46\xf0\x4f\x2e\xdd",
            Foreign(
                "a file of dgl.save_graphs",
                _IN_TWO.format("torch.stack(dgl.load_graphs(FILE)[0][0].edges())") + " takes the edges of a graph of one type",
            ),
        ),
        (rb"ORC(?=.*\0)", Foreign("an ORC file", _IN_TWO.format("pyarrow.orc.read_table(FILE)"))),
        (rb"Obj\x01", Foreign("an Avro file", "write it as Parquet")),
        (rb"7z\xbc\xaf\x27\x1c", Foreign("a 7z archive", "unpack it, and name a file or the folder in it: 7z x FILE")),
        (rb"Rar!\x1a\x07", Foreign("a RAR archive", "unpack it, and name a file or the folder in it: unrar x FILE")),
        (rb".{257}ustar[\0 ][0\0 ]", Foreign("a tar archive", "unpack it, and name a file or the folder in it: tar -xf FILE")),
        (rb"\x04\x22M\x18", Foreign("an lz4 file", "unpack it: lz4 -d FILE; gz, bz2, xz and zst are read as they are")),
        (rb"RD[AX][23]\n|X\n\0\0\0[\2\3]", Foreign("a file of R", "write it as CSV: write.csv(DATA, FILE, row.names = FALSE)")),
        (rb"%PDF-", Foreign("a PDF", "name the data itself")),
        (rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", Foreign("an old Excel file", _SHEET)),
    )
)
# .sg has no magic bytes: whether the graph is directed, and the numbers of its edges and nodes.
_SERIALIZED = re.compile(rb"[\x00\x01].{16}", re.DOTALL)
_GAP = Foreign(
    "a serialized graph of the GAP benchmark",
    "write it as text with its converter: converter -f FILE -e OUT.el, for .wsg with -w -e OUT.wel",
)


def tell_binary(url: str, head: bytes) -> Foreign | None:
    """Tell by its first bytes what a binary file is that is not read."""
    if head.startswith(b"PK"):
        return _tell_zip(url, head)
    for magic, found in _MAGICS:
        if magic.match(head):
            return found
    return _GAP if url.endswith((".sg", ".wsg")) and _SERIALIZED.match(head) else None


def _tell_zip(url: str, head: bytes) -> Foreign | None:
    """Tell an archive by the name of its first member; those of NumPy's arrays are read."""
    if not head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return None
    name = head[30 : 30 + int.from_bytes(head[26:28], "little")]
    if name.endswith(b".npy") or url.endswith(".npz"):
        return None
    if name.endswith(b"/data.pkl"):
        return _TORCH
    return Foreign("an Excel file", _SHEET) if name == b"[Content_Types].xml" or name.startswith(b"xl/") else _ZIP


def refuse_binary(url: str, head: bytes) -> None:
    """Raise DataError for a binary file that is known and not read."""
    found = tell_binary(url, head)
    if found is not None:
        raise found.refusal(url)


__all__ = ["Foreign", "refuse_binary", "tell_binary"]
