"""Say what a folder of samples or an export holds, by what it says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphprep.info.inspect import GraphInfo, TypeInfo
from graphprep.model.errors import DataError
from graphprep.model.shown.texts import count
from graphprep.storage.faults import display_url
from graphprep.store.made import SAMPLES_FORMAT


def inspect_made(url: str, value: Mapping[str, Any], head: int) -> GraphInfo:
    """Describe samples or an export; ``head`` is how many shards to name. Raises DataError where keys are missing."""
    try:
        return (_samples if value["format"] == SAMPLES_FORMAT else _export)(url, value, head)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        words = f"what the folder says of itself is not whole: {type(error).__name__}: {error}"
        raise DataError(words, place=display_url(url), fix="write it again, or copy it again") from None


def _types(names: list[str], counts: list[int]) -> tuple[TypeInfo, ...]:
    return tuple(TypeInfo(str(name), int(number)) for name, number in zip(names, counts, strict=True))


def _samples(url: str, value: Mapping[str, Any], head: int) -> GraphInfo:
    store, shards = value["store"], value["shards"]
    totals = [sum(one[key] for one in shards) for key in ("num_nodes", "num_edges")]
    epochs = f"{count(value['num_batches'], 'batch', 'batches')} in each of {count(value['num_epochs'], 'epoch')}"
    notes = [
        f"{count(value['num_flows'], 'flow')} of {count(value['num_layers'], 'layer')}: {epochs}; "
        f"{count(totals[0], 'node')}, {count(totals[1], 'edge')}",
        "nodes and edges above are those of the store that was sampled; graphprep.open_samples reads the flows",
    ]
    for one in shards[:head]:
        sizes = (count(one[f"num_{noun}s"], noun) for noun in ("flow", "node", "edge"))
        notes.append(f"{one['path']}: {', '.join(sizes)}")
    notes += [f"column {one['member']}: {one['dtype']}{one['item_shape'] or ''}" for one in value["columns"]]
    return GraphInfo(
        url,
        "samples",
        f"samples ({value['file_format']})",
        sum(one["bytes"] for one in shards),
        len(shards) + 1,
        graph_name=store["graph_name"],
        node_types=_types(store["node_type"], store["num_nodes_per_type"]),
        edge_types=_types(store["edge_type"], store["num_edges_per_type"]),
        notes=tuple(notes),
    )


def _export(url: str, value: Mapping[str, Any], _head: int) -> GraphInfo:
    options = ", ".join(f"{name}={one}" for name, one in value["options"].items() if one not in (None, "", [], False))
    ids = ", ".join(f"{name}: {space}" for name, space in value["ids"].items())
    notes = [f"nodes are numbered by ({ids})", *([f"options: {options}"] if options else [])]
    notes += [f"left out: {one}" for one in value["dropped"]]
    sizes = [0 if size is None else int(size) for size in value["files"].values()]  # those that come last are not known
    return GraphInfo(
        url,
        "export",
        f"export for {value['target']}",
        sum(sizes),
        len(sizes),
        graph_name=value["graph_name"],
        num_parts=value["num_parts"],
        partition_by=value["partition_by"],
        node_types=_types(value["node_type"], value["num_nodes_per_type"]),
        edge_types=_types(value["edge_type"], value["num_edges_per_type"]),
        notes=tuple(notes),
    )
