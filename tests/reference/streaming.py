"""LDG and Fennel, written plainly: one node after another, loops over neighbors and partitions, in the words of docs/store.md."""

from __future__ import annotations

import math


def stream_order(sizes):
    """The nodes (type, rank) in the order of the stream: slice i of 1024 of every type, then slice i + 1."""
    return [
        (number, rank)
        for at in range(1024)
        for number, size in enumerate(sizes)
        for rank in range(size * at // 1024, size * (at + 1) // 1024)
    ]


def stream(method, sizes, edges, num_parts, balances, passes=5, most=1.05):
    """Return the partition of each node (type, rank).

    ``edges`` are pairs of nodes. Each of ``balances`` maps a node to (class, weight).
    """
    order = stream_order(sizes)
    near = {node: [] for node in order}
    num_edges = 0
    for one, other in edges:
        if one != other:
            near[one].append(other)
            near[other].append(one)
            num_edges += 1
    totals, counts, loads = {}, {}, {}
    for number, balance in enumerate(balances):
        for one, weight in balance.values():
            key = number, one
            totals[key] = totals.get(key, 0) + weight
            counts[key] = counts.get(key, 0) + (weight > 0)
            loads[key] = [0] * num_parts
    means = {key: total / num_parts for key, total in totals.items()}
    caps = {key: max(-(-total // num_parts), math.floor(means[key] * most)) for key, total in totals.items()}
    rate = {key: 1.5 * (num_edges / len(order)) / (total / counts[key] if total else 1.0) for key, total in totals.items()}
    parts = {}
    for _ in range(passes):
        before = dict(parts)
        for node in order:
            mine = [((number, balance[node][0]), balance[node][1]) for number, balance in enumerate(balances)]
            if node in parts:
                old = parts.pop(node)
                for key, weight in mine:
                    loads[key][old] -= weight
            scores = []
            for part in range(num_parts):
                here = sum(parts.get(other) == part for other in near[node])
                fill = max((loads[key][part] / caps[key] for key, _ in mine if caps[key]), default=0.0)
                cost = max((rate[key] * weight * math.sqrt(loads[key][part] / means[key]) for key, weight in mine if caps[key]))
                fits = all(weight == 0 or loads[key][part] + weight <= caps[key] for key, weight in mine)
                score = here - cost if method == "fennel" else here * (1 - fill)
                scores.append((fits, score if fits else 0.0, -fill, -part))
            parts[node] = -max(scores)[3]
            for key, weight in mine:
                loads[key][parts[node]] += weight
        if parts == before:
            break
    return parts
