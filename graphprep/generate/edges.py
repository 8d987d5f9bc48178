"""Generated graphs of one type: R-MAT and grids, block by block, each from the seed and its number alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.generate.streams import Stream, permutation_rounds, rmat_limits, stream_key
from graphprep.kernels.edges import Kernels
from graphprep.model.errors import UsageError
from graphprep.model.option import flag_of

Ints = NDArray[np.int64]

_BLOCK_EDGES = 1 << 16  # 1 MiB of ends, about 1 MB of text
_MAX_SCALE = 48
_MAX_EDGES = 1 << 50
_MAX_SIDE = 1 << 31
_FIRST_TIME, _NUM_TIMES = 1_577_836_800, 366 * 86_400  # 2020, in seconds
_NUM_WEIGHTS = 1_000_000  # six decimals
_TINY = 2.0**-21  # half of what the probabilities are rounded to


@dataclass(frozen=True)
class Extras:
    """The columns besides the ends: which there are, and their draws."""

    kernels: Kernels
    seed: int
    weights: bool
    times: bool

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of all columns."""
        return ("src", "dst", *(("weight",) * self.weights), *(("time",) * self.times))

    def fill(self, first: int, columns: Ints, count: int) -> None:
        """Fill the columns behind the ends for the edges from ``first`` on."""
        if self.weights:
            self.kernels.fill_draws(stream_key(self.seed, Stream.WEIGHTS), first, _NUM_WEIGHTS, columns[2, :count])
        if self.times:
            self.kernels.fill_draws(stream_key(self.seed, Stream.TIMES), first, _NUM_TIMES, columns[-1, :count], _FIRST_TIME)


@dataclass(frozen=True)
class RmatGraph:
    """R-MAT: 2^scale nodes, skewed degrees."""

    extras: Extras
    scale: int
    num_edges: int
    probabilities: tuple[float, float, float]
    permute: bool
    block_edges: int = _BLOCK_EDGES

    @classmethod
    def of(cls, kernels: Kernels, values: dict[str, Any], seed: int) -> RmatGraph:
        """Make the graph that options ask for. Raises UsageError where one is out of range."""
        scale, factor, edges = values["scale"], values["edge_factor"], values["edges"]
        check_range("scale", scale, 0, _MAX_SCALE)
        check_range("edge_factor", factor, 0, _MAX_EDGES)
        num_edges = factor << scale if edges is None else edges
        check_range("edges", num_edges, 0, _MAX_EDGES)
        parts = (values["a"], values["b"], values["c"])
        if not (all(0 <= part <= 1 for part in parts) and sum(parts) <= 1 + _TINY):
            raise UsageError(
                f"--a, --b and --c must be 0 or more and 1 at most together, found {parts[0]:g}, {parts[1]:g}, {parts[2]:g}",
                fix="give the shares of the upper left, upper right and lower left quarter, such as 0.57 0.19 0.19",
            )
        return cls(Extras(kernels, seed, values["weights"], values["times"]), scale, num_edges, parts, values["permute"])

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the columns: src, dst, and weight (in millionths), time where they are wanted."""
        return self.extras.names

    @property
    def num_nodes(self) -> int:
        """Return the number of nodes."""
        return 1 << self.scale

    @property
    def num_blocks(self) -> int:
        """Return the number of blocks."""
        return -(-self.num_edges // self.block_edges)

    @cached_property
    def _limits(self) -> NDArray[np.uint64]:
        return rmat_limits(*self.probabilities)

    @cached_property
    def _rounds(self) -> NDArray[np.uint64] | None:
        return permutation_rounds(self.extras.seed) if self.permute else None

    def fill(self, block: int, columns: Ints) -> int:
        """Fill ``columns``, int64[len(names), block_edges], with a block's edges, and return their number."""
        first = block * self.block_edges
        count = min(self.block_edges, self.num_edges - first)
        key, ends = stream_key(self.extras.seed, Stream.QUADRANTS), (columns[0, :count], columns[1, :count])
        self.extras.kernels.rmat_edges(key, first, self.scale, self._limits, self._rounds, *ends)
        self.extras.fill(first, columns, count)
        return count


@dataclass(frozen=True)
class GridGraph:
    """A grid of rows x cols nodes, each linked to its four neighbours, in both directions."""

    extras: Extras
    rows: int
    cols: int
    torus: bool
    block_edges: int = _BLOCK_EDGES

    @classmethod
    def of(cls, kernels: Kernels, values: dict[str, Any], seed: int) -> GridGraph:
        """Make the graph that options ask for. Raises UsageError where one is out of range."""
        least = 3 if values["torus"] else 1  # on a smaller torus two neighbours would be one
        for name in ("rows", "cols"):
            check_range(name, values[name], least, _MAX_SIDE, " with --torus" if values["torus"] else "")
        extras = Extras(kernels, seed, values["weights"], values["times"])
        return cls(extras, values["rows"], values["cols"], values["torus"])

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the columns: src, dst, and weight (in millionths), time where they are wanted."""
        return self.extras.names

    @property
    def num_nodes(self) -> int:
        """Return the number of nodes."""
        return self.rows * self.cols

    @property
    def num_edges(self) -> int:
        """Return the number of edges."""
        return self.edges_before(self.num_nodes)

    @property
    def num_blocks(self) -> int:
        """Return the number of blocks."""
        return -(-self.num_nodes // self._block_nodes)

    @property
    def _block_nodes(self) -> int:
        return self.block_edges // 4

    def edges_before(self, node: int) -> int:
        """Return how many edges leave the nodes before ``node``."""
        if self.torus:
            return 4 * node
        up, down = node - min(node, self.cols), min(node, self.num_nodes - self.cols)
        left, right = node - -(-node // self.cols), node - node // self.cols
        return up + down + left + right

    def fill(self, block: int, columns: Ints) -> int:
        """Fill ``columns``, int64[len(names), block_edges], with a block's edges, and return their number."""
        first = block * self._block_nodes
        stop = min(first + self._block_nodes, self.num_nodes)
        count = self.extras.kernels.grid_edges(first, stop, self.rows, self.cols, self.torus, columns[0], columns[1])
        self.extras.fill(self.edges_before(first), columns, count)
        return count


EdgeGraph = RmatGraph | GridGraph  # made block by block, of at most ``block_edges`` edges


def check_range(name: str, value: int, least: int, most: int, when: str = "") -> None:
    """Raise UsageError where a number is out of its range."""
    if not least <= value <= most:
        what = f"{flag_of(name)} must be between {least} and {most:,}{when}, found {value:,}"
        raise UsageError(what, fix="give a number in that range")
