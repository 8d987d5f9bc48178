"""Keyword arguments of graphprep's functions, for type checkers and editors. docs/generated.py writes it."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Literal, TypedDict

from graphprep.model.graph_config import GraphConfig

class RunGiven(TypedDict, total=False):
    memory_limit: str
    threads: int
    tmp_dir: str | PathLike[str] | None
    storage_options: Mapping[str, str]
    device: str | None
    device_memory_limit: str

class ConvertGiven(RunGiven, total=False):
    format: str | None
    decoder: str | None
    schema: str | PathLike[str] | None
    ids: Literal["auto", "dense", "sparse"] | None
    num_nodes: int | Mapping[str, int]
    node_data: str | PathLike[str] | Sequence[Any]
    edge_data: str | PathLike[str] | Sequence[Any]
    labels: str | Sequence[Any]
    splits: str | Sequence[Any]
    seeds: str | PathLike[str] | Sequence[Any]
    categories: str | Sequence[Any]
    partitions: int | None
    partition_by: str | PathLike[str]
    layout: Literal["csc", "csr", "both"]
    neighbor_order: Literal["input", "id", "time", "weight"]
    edge_ids: bool
    edge_id_col: str | Sequence[Any]
    index_dtype: Literal["auto", "int32", "int64"]
    weight_dtype: Literal["float32", "float64"]
    densify: str | Sequence[Any]
    undirected: bool
    dedup: bool
    drop_self_loops: bool
    largest_component: bool
    graph_name: str | None
    seed: int
    overwrite: bool
    resume: bool
    allow_empty: bool
    on_error: Literal["stop", "skip"]
    bad_records: str | PathLike[str] | None
    max_errors: int | str | None
    min_nodes: int
    min_edges: int
    on_missing_node: Literal["error", "create", "drop"]
    missing_node_type: str | None
    engine: Literal["threads", "processes", "dask", "ray"]
    scheduler: str | None
    worker_index: int | None
    worker_count: int | None
    decoder_options: Mapping[str, Any]
    graph: GraphConfig | None
    block_bytes: int
    by: str | PathLike[str]

class ExportGiven(RunGiven, total=False):
    ids: Literal["auto", "raw", "typed"]
    partitions: int | None
    partition_by: str | PathLike[str] | None
    seed: int
    feature_dtypes: Mapping[str, str]
    densify: str | Sequence[Any]
    drop_columns: str | Sequence[Any]
    drop_unsupported: bool
    message_edges: Literal["train", "train+valid", "all"] | None
    missing_time: str
    link: bool
    overwrite: bool
    target_options: Mapping[str, Any]

class GenerateGiven(RunGiven, total=False):
    format: Literal["edges", "csv", "parquet", "npy", "edgelist", "json", "tsv", "chunked"] | None
    seed: int
    overwrite: bool
    scale: int | None
    edge_factor: int | None
    edges: int | None
    a: float | None
    b: float | None
    c: float | None
    permute: bool | None
    rows: int | None
    cols: int | None
    torus: bool | None
    weights: bool | None
    times: bool | None
    nodes: int | None
    features: int | None
    chunks: int | None

class PartitionGiven(RunGiven, total=False):
    by: str | PathLike[str]
    partitions: int | None
    seed: int
    passes: int | None
    balance: str | Sequence[Any]
    max_imbalance: float | None
    halo_hops: int
    assignment_only: bool
    overwrite: bool
    partition_by: str | PathLike[str]

class ReorderGiven(RunGiven, total=False):
    by: str | PathLike[str]
    scope: Literal["partition", "graph"]
    edge_types: str | Sequence[Any]
    shuffle_ratio: float
    split_ratio: float
    id2index: bool
    seed: int
    overwrite: bool

class SampleGiven(RunGiven, total=False):
    seeds: str | PathLike[str] | Sequence[Any]
    fanouts: str | Sequence[Any]
    full: int | None
    layer_sizes: str | Sequence[Any]
    layer_method: Literal["ladies", "fastgcn"]
    direction: Literal["in", "out", "both"]
    sampler: Literal["neighbor", "random-walk"]
    walks: int
    walk_length: int
    restart_prob: float
    metapath: str | Sequence[Any]
    replace: bool
    weight_column: str | None
    time_column: str | None
    seed_times: str | PathLike[str] | Sequence[Any]
    missing_time: str
    untimed: Literal["include", "exclude"]
    add_self_loop: bool
    batch_size: int
    epochs: int
    shuffle: bool
    seed: int
    typed_ids: bool
    copy_columns: str | Sequence[Any]
    format: Literal["npz", "parquet"]
    overwrite: bool

class SplitGiven(RunGiven, total=False):
    by: str
    of: str | Sequence[Any]
    at: str | None
    symmetric: bool
    reverse_types: str | Sequence[Any]
    reverses: Literal["together", "apart"]
    seed: int
    negatives: str | None
    negatives_by: str
    corrupt: Literal["tail", "head", "both"]
    overwrite_column: bool
    overwrite: bool

class StatsGiven(RunGiven, total=False):
    triangles: Literal["auto", "exact", "sampled"] | None
    top: int
    seed: int
    plot: str | PathLike[str] | None
    overwrite: bool
    histograms: bool

class TransformGiven(RunGiven, total=False):
    ids: Literal["compact", "preserved"]
    other_types: Literal["keep", "drop"]
    into: str | None
    as_: str | Sequence[Any]
    maps: str | PathLike[str] | None
    overwrite: bool

class TargetGiven(ExportGiven, total=False):
    bfloat16: bool
    cache_ratio: float
    cache_scores: str | Sequence[Any]
    chunk_mb: int
    chunks: int
    compressed: bool
    compression: Literal["zstd", "snappy", "gzip", "none"]
    data: Literal["numpy", "parquet"]
    delimiter: Literal["auto", "blank", "tab", "comma"]
    edge_assign: Literal["auto", "by_src", "by_dst"]
    edge_id_col: str | Sequence[Any]
    edge_ids: bool
    edge_order: Literal["destination", "stored"]
    edges: Literal["csv", "numpy", "parquet"]
    features: str | Sequence[Any]
    files: Literal["pt", "npy"]
    form: Literal["auto", "collab", "citation2", "wikikg2"]
    format: Literal["csc", "csr", "coo"]
    formats: str | Sequence[Any]
    graph_caching: bool
    graph_class: Literal["auto", "homo", "hetero"]
    graphbolt: bool
    halo_hops: int
    header: bool
    hypersparse: bool
    in_memory: bool
    include_original_edge_id: bool
    layout: Literal["COO", "CSC"]
    layouts: str | Sequence[Any]
    masks: bool
    node_size: str
    node_weight: str
    opened_as: str | None
    parmetis: bool
    save_orig_eids: bool
    save_orig_nids: bool
    skip_edge_sampler: bool
    skip_node_sampler: bool
    texts: Literal["string", "binary"]
    watermark: int | None
    weight: str

class StatsCall(StatsGiven, ConvertGiven, total=False): ...
