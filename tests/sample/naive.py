"""Flows by the definition of docs/sample.md, in plain Python: one node, one edge, one draw at a time."""

import math
from collections import defaultdict

MASK = 0xFFFFFFFF


def philox(counter, key):
    """Ten rounds of Philox4x32 on four words under two."""
    c, k = list(counter), list(key)
    for _ in range(10):
        first, second = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(second >> 32) ^ c[1] ^ k[0], second & MASK, (first >> 32) ^ c[3] ^ k[1], first & MASK]
        k = [(k[0] + 0x9E3779B9) & MASK, (k[1] + 0xBB67AE85) & MASK]
    return c


def stream(seed, epoch, batch, hop, number):
    return philox((batch, epoch, hop, number), (seed & MASK, seed >> 32))[:2]


def words_of(node, key, salt=0):
    block = 0
    while True:
        yield from philox((block, node & MASK, node >> 32, salt), key)
        block += 1


def below(bound, words):
    while True:
        product = next(words) * bound
        if (product & MASK) >= 2**32 % bound:
            return product >> 32


def uniforms(words):
    while True:
        high, low = next(words), next(words)
        yield (((high << 21) | (low >> 11)) + 1.0) * 2.0**-53


def salt_of(time):
    return 0 if time is None else ((time & (2**64 - 1)) ^ ((time & (2**64 - 1)) >> 32)) & MASK


def draw(row, node, time, fanout, key, *, replace, weighted, timed):
    """Return which entries of a row, (source, edge ID, weight, time) each, are drawn, in their order."""
    words = words_of(node, key, salt_of(time))
    known = [
        i for i, (_, _, weight, stamp) in enumerate(row) if not (timed and stamp >= time) and not (weighted and weight == 0)
    ]
    if fanout < 0 or (len(known) <= fanout and not replace):
        return known
    if not known:
        return []
    if not weighted and not timed:
        if replace:
            return sorted(below(len(row), words) for _ in range(fanout))
        chosen = set()
        for last in range(len(row) - fanout, len(row)):
            found = below(last + 1, words)
            chosen.add(last if found in chosen else found)
        return sorted(chosen)
    weights = [row[i][2] if weighted else 1.0 for i in known]
    numbers = uniforms(words)
    pick = by_alias if replace else by_jumps
    return sorted(known[i] for i in pick(weights, fanout, numbers))


def by_alias(weights, size, numbers):
    total, num = 0.0, len(weights)
    for weight in weights:
        total += weight
    shares, aliases = [weight / total * num for weight in weights], list(range(num))
    small = [i for i in range(num) if shares[i] < 1.0]
    large = [i for i in range(num) if shares[i] >= 1.0]
    while small and large:
        one, other = small.pop(), large[-1]
        aliases[one] = other
        shares[other] = shares[other] + shares[one] - 1.0
        if shares[other] < 1.0:
            small.append(large.pop())
    for i in small:
        shares[i] = 1.0
    for _ in range(size):
        at = (1.0 - next(numbers)) * num
        entry = min(int(at), num - 1)
        yield aliases[entry] if at - entry >= shares[entry] else entry


def by_jumps(weights, size, numbers):
    keys = [math.log(next(numbers)) / weight for weight in weights[:size]]
    held = list(range(size))
    lowest = keys.index(min(keys))
    jump = math.log(next(numbers)) / keys[lowest]
    for i in range(size, len(weights)):
        jump -= weights[i]
        if jump > 0:
            continue
        least = math.exp(keys[lowest] * weights[i])
        keys[lowest] = math.log(least + (1.0 - least) * next(numbers)) / weights[i]
        held[lowest] = i
        lowest = keys.index(min(keys))
        jump = math.log(next(numbers)) / keys[lowest]
    return held


def flow(graph, blocks, seeds, fanouts, *, seed=0, epoch=0, batch=0, replace=False, weighted=False, timed=False, loops=()):
    """Return (layers, blocks): layers, outermost first, of {type: [(node, time)]}; blocks of, for each block type, the edges
    (source (node, time), destination (node, time), edge ID) in order.

    ``graph``: for each edge type (source type, destination type, edges); edges are (source, destination, weight, time) by ID.
    ``blocks``: (edge type, is reversed).
    """
    rows = []
    for number, is_reversed in blocks:
        rows.append(defaultdict(list))
        for edge_id, (source, destination, weight, time) in enumerate(graph[number][2]):
            row, other = (source, destination) if is_reversed else (destination, source)
            rows[-1][row].append((other, edge_id, weight, time))
    layers = [seeds]
    found = []
    for hop, fanout in enumerate(fanouts):
        layer, block = defaultdict(dict), []
        for at, (number, is_reversed) in enumerate(blocks):
            ends = graph[number][:2]
            source_type, destination_type = reversed(ends) if is_reversed else ends
            key = stream(seed, epoch, batch, hop, at)
            edges = []
            for node, time in layers[-1].get(destination_type, ()):
                if at in loops:
                    edges.append(((node, time), (node, time), -1))
                row = rows[at][node]
                some = (
                    ()
                    if fanout[at] == 0
                    else draw(row, node, time, fanout[at], key, replace=replace, weighted=weighted, timed=timed)
                )
                edges += [((row[i][0], time), (node, time), row[i][1]) for i in some]
            for source, _, _ in edges:
                layer[source_type].setdefault(source)
            block.append(edges)
        layers.append({name: list(nodes) for name, nodes in layer.items()})
        found.append(block)
    return layers[::-1], found[::-1]
