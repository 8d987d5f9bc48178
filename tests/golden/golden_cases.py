"""The golden cases: a folder each, with case.json (inputs and options) and store/ (every byte of the output)."""

from __future__ import annotations

import hashlib
import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import graphprep

GOLDEN = Path(__file__).resolve().parent
SAMPLE_DATA = GOLDEN.parent.parent / "sample_data"
METHODS = ("range", "hash", "modulo", "random")
# What is tried with every case is tried by `make test` with these: every format, and every kind of ID, type and column.
FEW = (
    "davis_chunked", "davis_edgelist", "davis_partition_folder", "dtypes_json", "edges_columns", "edges_dense_num_nodes",
    "edges_empty", "edges_one_based", "edges_parquet", "edges_plain", "edges_timed", "faulty_tsv", "karate_csv",
    "karate_partition_file", "karate_tsv_no_edge_ids", "lesmis_weight", "names_awkward_types", "names_lesmis",
    "names_triples", "peers_arrays", "peers_graphbolt", "peers_metis", "peers_mtx", "peers_neo4j", "peers_ogb",
    "people_create_nodes", "people_drop_edges", "people_tables", "shop_edgelist_both_parts", "shop_json_roles",
    "shop_tsv_modulo",
)  # fmt: skip
DIGESTS = GOLDEN / "rewritten.json"  # of what REWRITES make, by name
_HOMO, _PARTS, _HETERO, _NAMES = "karate_csv", "karate_partition_file", "shop_edgelist_both_parts", "names_lesmis"


@dataclass(frozen=True)
class Case:
    """``inputs`` and a partition file are relative to sample_data; ``options`` are fields of ``ConvertOptions``."""

    name: str
    inputs: tuple[str, ...]
    options: dict[str, Any]

    @property
    def store(self) -> Path:
        return GOLDEN / self.name / "store"

    @property
    def input_paths(self) -> list[Path]:
        return [SAMPLE_DATA / one for one in self.inputs]

    def resolved_options(self) -> dict[str, Any]:
        """The options with the partition file's path made absolute."""
        method = self.options.get("partition_by", "range")
        return self.options if method in METHODS else self.options | {"partition_by": str(SAMPLE_DATA / method)}


def load_cases() -> list[Case]:
    """All cases, by name."""
    found = []
    for path in sorted(GOLDEN.glob("*/case.json")):
        value = json.loads(path.read_text())
        found.append(Case(path.parent.name, tuple(value["inputs"]), value["options"]))
    return found


def load_rewritten(folder: str) -> list[tuple[Case, Path, dict[str, Any]]]:
    """The cases of ``reordered`` or ``partitioned``: (the golden case that is read, the golden store, options), by name."""
    cases = {case.name: case for case in load_cases()}
    found = []
    for path in sorted((GOLDEN / folder).glob("*/case.json")):
        value = json.loads(path.read_text())
        found.append((cases[value["store"]], path.parent / "store", value["options"]))
    return found


def read_store(folder: Path) -> dict[str, bytes]:
    """Every file of a store but provenance.json, by its path."""
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    files.pop("provenance.json", None)
    return files


# ---- what transform, reorder, partition, split and sample make of golden stores: a digest each


@dataclass(frozen=True)
class Rewrite:
    """A command over a golden store: ``how`` are operations, an order, a method, or fan-outs. ``{ids}``, ``{shop}``: files of IDs."""

    command: str
    store: str
    how: str
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def name(self) -> str:
        """Return what the case is called among the digests."""
        flags = "".join(f" {name}={value}" for name, value in self.options)
        return f"{self.command} {self.store}: {self.how}{flags}"

    def run(self, out: Path, **fields: Any) -> None:
        """Write what comes of the store below ``out``."""
        store, options = GOLDEN / self.store / "store", dict(self.options) | fields
        files = {"ids": GOLDEN / "rewritten_ids.txt", "shop": GOLDEN / "rewritten_shop.txt"}
        if self.command == "sample":
            seeds = files["ids"] if self.store == _HOMO else f"0={files['shop']}"
            drawn = {"layer_sizes": "6,4"} if self.how in ("ladies", "fastgcn") else {"fanouts": self.how}
            graphprep.sample(str(store), str(out / "samples"), seeds=seeds, batch_size=3, **drawn, **options)
        elif self.command == "transform":
            words = [word.format(**files) for word in shlex.split(self.how)]
            maps = {"maps": str(out / "maps")} if options.pop("maps", False) else {}
            graphprep.transform(str(store), str(out / "store"), words, **maps, **options)
        else:
            command = {"reorder": graphprep.reorder, "partition": graphprep.partition, "split": graphprep.split}[self.command]
            command(str(store), str(out / "store"), by=self.how, **options)


def digest(folder: Path) -> str:
    """Return the digest of every file below a folder but provenance.json, by path."""
    found = hashlib.blake2b(digest_size=16)
    for path, data in sorted(read_store(folder).items()):
        if not path.endswith("provenance.json"):
            found.update(f"{path} {len(data)}\n".encode() + data)
    return found.hexdigest()


def _rewrites() -> list[Rewrite]:
    everywhere = (
        *("reverse", "transpose", "add-reverse", "self-loops drop", "self-loops add", "filter-degree 2:", "largest-component"),
        *("to-simple first", "to-simple last", "to-simple sum", "to-simple max", "to-simple count", "to-homogeneous"),
        *("metagraph", "layout csr", "layout both", "index-dtype int64", "sort-neighbors id", "self-loops drop to-simple"),
    )
    of_one = (
        *("to-bidirected", "symmetrize sum", "symmetrize max", "symmetrize keep", "line-graph", "line-graph no-backtracking"),
        *("node-subgraph {ids}", "edge-subgraph {ids}", "khop-subgraph {ids} 1", "flatten knows"),
        *("filter 'weight > 3'", "sort-neighbors weight", "drop-columns weight", "to-bidirected filter-degree 8: reverse"),
    )
    of_several = (
        *("khop-subgraph 0={shop} 2", "flatten 0 1"),
        *("add-reverse to-homogeneous line-graph", "to-homogeneous to-bidirected largest-component"),
    )
    orders = ("degree", "in-degree", "out-degree", "hub-sort", "hub-cluster", "dbg", "bfs", "rcm", "llp", "random")
    found = [Rewrite("transform", store, how) for store in (_HOMO, _HETERO) for how in everywhere]
    found += [Rewrite("transform", _HOMO, how) for how in of_one] + [Rewrite("transform", _HETERO, how) for how in of_several]
    found += [Rewrite("transform", store, "node-subgraph {ids}", (("ids", "preserved"),)) for store in (_HOMO,)]
    of_a_type = ("node-subgraph 0={shop}", "edge-subgraph 0:0:1={ids}")
    found += [Rewrite("transform", _HETERO, how, (("other_types", "keep"),)) for how in of_a_type]
    found += [Rewrite("transform", store, "to-simple largest-component", (("maps", True),)) for store in (_HOMO, _HETERO)]
    scopes = ("partition", "graph")
    found += [
        Rewrite("reorder", store, by, (("scope", scope),)) for store in (_PARTS, _HETERO) for by in orders for scope in scopes
    ]
    found.append(Rewrite("reorder", _HETERO, "in-degree", (("id2index", True), ("shuffle_ratio", 0.5), ("split_ratio", 0.5))))
    methods = {_HOMO: ("range", "hash", "modulo", "random", "ldg", "fennel")}
    methods |= {_HETERO: methods[_HOMO], _NAMES: ("hash", "random", "fennel")}
    for store, some in methods.items():
        found += [Rewrite("partition", store, by, (("partitions", 3),)) for by in some]
    for by in ("ldg", "fennel"):
        found.append(Rewrite("partition", _HETERO, by, (("partitions", 3), ("assignment_only", True), ("balance", ("type",)))))
    shares, edges = ("shares", "0.6/0.2/0.2"), ("of", ("edges",))
    found += [Rewrite("split", _HOMO, "random", (shares, edges, ("symmetric", True)))]
    found += [Rewrite("split", store, "nodes", (shares,)) for store in (_PARTS, _HETERO, _NAMES)]
    found.append(Rewrite("split", _HETERO, "time:weight", (("shares", "0.5/0.5"), edges)))
    found.append(Rewrite("split", "edges_roles", "label", (shares, edges, ("overwrite_column", True))))
    for store in (_HOMO, _HETERO):
        found += [Rewrite("sample", store, "4,3,2", (("epochs", 2), *more)) for more in ((), (("replace", True),))]
        found += [Rewrite("sample", store, "3,-1", (("direction", way),)) for way in ("out", "both")]
        found += [Rewrite("sample", store, method, (("layer_method", method),)) for method in ("ladies", "fastgcn")]
    found.append(Rewrite("sample", _HOMO, "4,3", (("add_self_loop", True), ("copy_columns", ("weight",)))))
    return found


REWRITES = _rewrites()
