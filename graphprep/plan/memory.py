"""What each stage holds of memory: at most, as ``convert`` declares it in its ledger, and likely.

Of each entry of the ledger, likely is the part that this input will use: an entry is a cap, which a small input does not reach.
How much of it work in progress takes is measured while a sample is decoded; docs/plan.md has the rest, and how it was fitted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from graphprep.convert.build.write import build_needs, publish_need
from graphprep.convert.index.nodes import index_needs
from graphprep.convert.read.decode import DecodeSettings, decode_needs
from graphprep.convert.read.plan import Planned, decoded_bytes
from graphprep.convert.run import Run
from graphprep.convert.shuffle.route_edges import group_bytes, route_needs
from graphprep.engine.budget import SMALL_LIMIT_BYTES
from graphprep.engine.ledger import EDGE_BYTES, Need
from graphprep.engine.local import num_in_flight
from graphprep.model.options.plan import PlannedNeed, PlannedStage
from graphprep.plan.sample import Stratum
from graphprep.plan.sizes import GraphSizes

_KERNELS_BYTES = 3 << 20  # machine code, and the modules that load it
_GROUP_EDGES = 1 << 20
_PLAIN_EDGE_BYTES = 9  # of an edge while it is scattered, beside its run
_EDGE_BYTES = 40  # where the types of its ends are to be found, too
_TEXT_BYTES = 160  # of a text that is indexed, beside itself: entries of its table, and of the one it grows into
_SORTED_BYTES = 24  # of a raw ID while it is sorted
_BUCKET_EDGES = 1 << 16
_HOLES_BYTES = 96 << 20  # as much as was seen: what is larger goes back to the system


@dataclass(frozen=True)
class MemoryRoom:
    """What planning works with."""

    run: Run
    planned: Planned
    settings: DecodeSettings
    sizes: GraphSizes
    strata: list[Stratum]
    code_bytes: int

    def stages(self, seconds: Callable[[str], float]) -> tuple[PlannedStage, ...]:
        """Return what each stage takes, and its ``seconds``."""
        run, sizes, memory = self.run, self.sizes, self.run.memory
        amounts, most = sizes.amounts, decoded_bytes(self.planned)
        needs: dict[str, Iterable[Need]] = {
            "decode": (*decode_needs(self.settings, most), memory.runs(most)),
            "index": (*index_needs(amounts, memory.cap_bytes), memory.runs()),
            "shuffle": (
                *route_needs(amounts, memory, sizes.maps, has_roles=self.has_roles),
                memory.runs(amounts.most_bytes),
            ),
            "build": (*build_needs(run.options, memory, sizes.shape, amounts.most_bytes), memory.runs(amounts.most_bytes)),
            "publish": (publish_need(run.options, sizes.shape), memory.runs(amounts.most_bytes)),
        }
        stages: list[PlannedStage] = []
        kept = 0
        for name, declared in needs.items():
            stage = self._stage(name, declared, kept, seconds(name))
            stages.append(stage)
            kept = max(kept, stage.likely_bytes) if self.is_generous else 0
        return (PlannedStage("plan", seconds("plan"), stages[0].most_bytes, self.base_bytes), *stages)

    @property
    def has_roles(self) -> bool:
        """Return whether columns get roles once rows are scattered."""
        options = self.run.options
        return bool(options.labels or options.splits or options.seeds or options.categories)

    @property
    def looks_up(self) -> bool:
        """Return whether raw IDs are no typed IDs, of some space."""
        return any(one.rows is not None for one in self.sizes.maps.values())

    @property
    def is_generous(self) -> bool:
        """Return whether what stages free stays with the process."""
        return self.run.memory.limit_bytes >= SMALL_LIMIT_BYTES

    @property
    def base_bytes(self) -> int:
        """Return what the process holds whatever it does."""
        return self.run.memory.held_bytes + self.code_bytes + _KERNELS_BYTES

    def _stage(self, name: str, declared: Iterable[Need], kept: int, elapsed_s: float) -> PlannedStage:
        ledger, likely = self.run.ledger, self._likely(name)
        needs, own = [], 0
        for one in (*ledger.always, *declared):
            part = {"process": self.run.memory.held_bytes, "code": self.code_bytes + _KERNELS_BYTES}.get(one.name)
            part = min(one.num_bytes, round(likely.get(one.name, 0))) if part is None else part
            if one.num_bytes:
                why = one.why.format(*(f"{size:,} bytes" for size in one.sizes))
                needs.append(PlannedNeed(one.name, one.num_bytes, part, why))
            own += part
        heap = max(0, kept - own) if name != "publish" or self.is_generous else 0
        needs.append(PlannedNeed("heap", heap, heap, "what stages left")) if heap else None
        most = min(ledger.limit_bytes, sum(one.most_bytes for one in needs))
        return PlannedStage(name, elapsed_s, most, min(ledger.limit_bytes, own + heap), tuple(needs))

    # ---- what this input uses of each entry

    def _likely(self, stage: str) -> dict[str, float]:
        sizes, memory = self.sizes, self.run.memory
        decoded, shuffled = sizes.decode_runs, sizes.shuffle_runs
        pool = memory.pool_bytes
        if stage == "decode":
            return {"runs": min(pool, decoded), **self._decoding(), "texts": self._texts()}
        if stage == "index":
            marks = 0 if sizes.is_early else max((one.value for one in sizes.num_nodes.values()), default=0) / 8
            ids = sizes.amounts.num_nodes * _SORTED_BYTES if self.looks_up else 0
            return {"runs": min(pool, decoded), "raw IDs": ids, "marks": marks * memory.threads, "texts": self._texts()}
        runs = min(pool, max(decoded, shuffled))
        if self.is_generous and not sizes.is_early:
            runs = min(pool, min(decoded, _HOLES_BYTES) + shuffled)  # what earlier stages freed is in holes of the heap
        if stage == "shuffle":
            return {"runs": runs, "groups": self._groups(), "maps": self._maps(), "write buffers": 4 << 20}
        tasks = EDGE_BYTES * min(num_in_flight(memory.threads) * _BUCKET_EDGES, sizes.amounts.num_edges)
        columns = sizes.store_bytes.get("edge columns", 0)
        return {"runs": min(pool, shuffled), "build tasks": tasks, "columns": columns, "files": 1 << 20}

    def _decoding(self) -> dict[str, float]:
        """Return what blocks under way take: those that are being decoded, and those whose rows wait to be collected."""
        threads = self.run.memory.threads
        blocks = segments = 0.0
        for one in self.strata:
            block = min(self.settings.block_bytes, one.amount if one.kind == "text" else self.settings.block_bytes)
            at_work, done = block * (1 + one.work_share), block * one.row_share
            count = min(threads, -(-one.amount // max(1, block))) if one.kind == "text" else 1
            blocks = max(blocks, count * at_work + (count + 1) * done)
            if self.sizes.is_early and self.settings.early is not None:
                group = min(one.amount / max(1, count), self.settings.early.group_bytes)
                edges = group * self.sizes.amounts.num_edges / max(1.0, one.amount)
                segments = max(segments, count * edges * 8)
        return {"blocks": blocks, "segments": segments, "marks": self.sizes.amounts.num_nodes / 8 * threads}

    def _texts(self) -> float:
        sizes = self.sizes
        if not sizes.amounts.has_texts:
            return 0.0
        number = sum(one.value for name, one in sizes.num_nodes.items() if sizes.raw_ids[name] == "string")
        return float(sizes.text_runs + _TEXT_BYTES * number)

    def _groups(self) -> float:
        sizes, threads = self.sizes, self.run.memory.threads
        if sizes.is_early:
            return 0.0
        each = _EDGE_BYTES if self.planned.sources.nodes == "records" else _PLAIN_EDGE_BYTES
        return threads * min(min(_GROUP_EDGES, sizes.amounts.num_edges / threads) * each, group_bytes(self.run.memory))

    def _maps(self) -> float:
        cap = self.run.memory.cap_bytes
        return float(sum(one.map_bytes(cap) for one in self.sizes.maps.values() if one.rows is not None))
