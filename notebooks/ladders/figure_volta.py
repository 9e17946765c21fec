"""What the notebook of Volta's layouts draws: quad pairs as one tile, the way of p to its operand, and its price."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, Patch, Rectangle

from microbench.layouts.derive import Numbers
from microbench.layouts.draw import INK, TINTS
from microbench.report.figures import PALETTE
from notebooks.ladders.exchange import BLOCK, ROWS, Exchange
from notebooks.ladders.routes import NAMES, Pair

BLUE, RED, GREEN, VIOLET, OCHRE, GREY = PALETTE
KEPT, SHUFFLED, HANDED_ON, STORED, LOADED = GREY, BLUE, RED, OCHRE, GREEN
WORD, PITCH = (1.15, 0.62), 1.2  # of a box that is one register, two scores; from one to the next
STAGES = (0.0, 4.4, 11.3)  # where accumulators begin, what lies between, and operands


def tile(shown: Exchange, quad_pair: Numbers, mark: int) -> Figure:
    """16 rows by 16 keys of scores by lane, beside the lanes that hold each row and key as operands.

    Args:
        shown: any route; scores and Q lie alike in both.
        quad_pair: (32,), the number of each lane's product.
        mark: a lane whose scores and operand row are framed.
    """
    figure, axes = plt.subplots(figsize=(10.2, 5.4))
    lanes_of_row = np.array([np.flatnonzero(shown.row_of == row) for row in range(ROWS)])
    for row in range(ROWS):
        for at, lane in enumerate(lanes_of_row[row]):
            _cell(axes, at - 3.2, row, TINTS[quad_pair[lane]], str(lane), framed=lane == mark)
        for key in range(BLOCK):
            lane = shown.lane[row, key]
            _cell(axes, key, row, TINTS[quad_pair[lane]], str(lane), framed=lane == mark)
    axes.set(xlim=(-3.3, BLOCK + 0.1), ylim=(ROWS + 0.1, -2.2), aspect=0.62)
    axes.set_xticks(np.arange(BLOCK) + 0.5, [str(key) for key in range(BLOCK)], fontsize=8)
    axes.set_yticks(np.arange(ROWS) + 0.5, [str(row) for row in range(ROWS)], fontsize=8)
    axes.xaxis.tick_top()
    axes.tick_params(length=0, pad=-26, axis="x")
    axes.tick_params(length=0, axis="y")
    axes.set_ylabel("row of Q", fontsize=9)
    axes.text(BLOCK / 2, -1.45, "scores: row by key", ha="center", fontsize=10, weight="bold")
    axes.text(-2.2, -1.45, "operand: row", ha="center", fontsize=10, weight="bold")
    _bare(axes)
    handles: list[Patch] = [Patch(facecolor=TINTS[number], label=f"quad pair {number}") for number in range(4)]
    handles.append(Patch(facecolor="none", edgecolor=INK, linewidth=1.8, label=f"lane {mark}"))
    axes.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.01), ncols=5, frameon=False, fontsize=9)
    return figure


def _cell(axes: Axes, x: float, y: float, colour: str, text: str, framed: bool) -> None:
    axes.add_patch(Rectangle((x, y), 1, 1, facecolor=colour, edgecolor="white", linewidth=0.8))
    axes.text(x + 0.5, y + 0.53, text, ha="center", va="center", fontsize=8.5)
    if framed:
        axes.add_patch(Rectangle((x, y), 1, 1, facecolor="none", edgecolor=INK, linewidth=1.8, zorder=3))


def _bare(axes: Axes) -> None:
    axes.grid(False)
    axes.spines[:].set_visible(False)


@dataclass(frozen=True, eq=False)
class _Group:
    """Eight keys of the rows of lane 0, and the lanes that share these rows; a word is (row, first of its two keys)."""

    shown: Exchange
    half: int

    @cached_property
    def rows(self) -> list[int]:
        made = self.shown.lane[:, 8 * self.half : 8 * self.half + 8] == 0
        return [int(row) for row in np.flatnonzero(made.any(axis=1))]

    @property
    def keys(self) -> range:
        return range(8 * self.half, 8 * self.half + 8, 2)

    @cached_property
    def height(self) -> dict[int, float]:
        """Of each lane, from above."""
        lanes = np.unique(self.shown.lane[np.ix_(self.rows, list(self.keys))])
        return {int(lane): -float(at) for at, lane in enumerate(lanes)}

    def maker(self, row: int, key: int) -> int:
        return int(self.shown.lane[row, key])

    def words(self, lane: int, four: int) -> list[tuple[int, int]]:
        row, key = (each[lane, self.half, four, ::2].tolist() for each in (self.shown.row, self.shown.key))
        return list(zip(row, key, strict=True))


def ways(registers: Exchange, shared: Exchange, half: int = 0) -> Figure:
    """Eight keys of two rows, from the accumulators of the four lanes that share them to operands, by either route."""
    figure, (upper, lower) = plt.subplots(2, 1, figsize=(11.2, 7.0), layout="constrained")
    _shuffles(upper, _Group(registers, half))
    _memory(lower, _Group(shared, half))
    rows = _Group(registers, half).rows
    handles: list[Patch | Line2D] = [
        Patch(facecolor=TINTS[at], label=f"row {row}, by keys") for at, row in enumerate(rows)
    ]
    handles += [
        Line2D([], [], color=colour, linewidth=2, label=label)
        for colour, label in (
            (KEPT, "stays"),
            (SHUFFLED, "SHFL, lane xor 2"),
            (HANDED_ON, "two SHFL, lane xor 4"),
            (STORED, "STS, 4 bytes"),
            (LOADED, "LDS, 16 bytes"),
        )
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False, fontsize=9)
    return figure


def _shuffles(axes: Axes, group: _Group) -> None:
    """An operand's first four keys come of one exchange; the other four, from the lane that has them as its first."""
    _ground(axes, group, "in registers", "four keys of one row", STAGES[1] + PITCH)
    first = {word: (lane, y) for lane, y in group.height.items() for word in group.words(lane, 0)}
    first_of = {(word, lane): y for lane, y in group.height.items() for word in group.words(lane, 0)}
    holders = {word: [lane for (other, lane) in first_of if other == word] for word in first}
    for lane, y in group.height.items():
        for at, word in enumerate(sorted(group.words(lane, 0))):
            came = KEPT if group.maker(*word) == lane else SHUFFLED
            _box(axes, group, word, STAGES[1] + at * PITCH, y, came)
            _arrow(axes, _end(2, 0), group.height[group.maker(*word)], STAGES[1], y, came)
        (source,) = {holders[word][0] for word in group.words(lane, 1)}
        _arrow(axes, _end(2, 1), y, STAGES[2], y, KEPT)
        _arrow(axes, _end(2, 1), group.height[source], STAGES[2], y, HANDED_ON)
        for four, came in enumerate((KEPT, HANDED_ON)):
            for word in group.words(lane, four):
                _box(axes, group, word, STAGES[2] + group.keys.index(word[1]) * PITCH, y, came)


def _memory(axes: Axes, group: _Group) -> None:
    """Each lane stores its words where their row lies, and loads its own row."""
    _ground(axes, group, "through shared memory", "shared memory: 16 bytes of each row", STAGES[1] + 2 * PITCH)
    middle = sum(group.height.values()) / len(group.height)
    place = {row: middle + 0.9 - 1.8 * at for at, row in enumerate(group.rows)}
    for row, y in place.items():
        for at, key in enumerate(group.keys):
            _box(axes, group, (row, key), STAGES[1] + at * PITCH, y, STORED)
            _arrow(axes, _end(2, 0), group.height[group.maker(row, key)], STAGES[1], y, STORED)
    for lane, y in group.height.items():
        (row,) = {word[0] for four in range(2) for word in group.words(lane, four)}
        _arrow(axes, _end(4, 1), place[row], STAGES[2], y, LOADED)
        for four in range(2):
            for word in group.words(lane, four):
                _box(axes, group, word, STAGES[2] + group.keys.index(word[1]) * PITCH, y, LOADED)


def _ground(axes: Axes, group: _Group, title: str, between: str, between_at: float) -> None:
    """The accumulators of each lane, and what the stages are."""
    for lane, y in group.height.items():
        axes.text(-0.25, y, f"lane {lane}", ha="right", va="center", fontsize=10, weight="bold")
        for at, row in enumerate(group.rows):
            (key,) = (key for key in group.keys if group.maker(row, key) == lane)
            _box(axes, group, (row, key), STAGES[0] + at * PITCH, y, INK)
    top, bottom = max(group.height.values()) + 0.55, min(group.height.values()) - 0.5
    for x, text in (
        (STAGES[0] + PITCH, "accumulators, as float16"),
        (between_at, between),
        (STAGES[2] + 2 * PITCH, "operand of p V"),
    ):
        axes.text(x, top, text, ha="center", va="bottom", fontsize=9.5)
    axes.set(xlim=(-1.3, STAGES[2] + 4 * PITCH + 0.1), ylim=(bottom, top + 0.45), xticks=[], yticks=[])
    axes.set_title(title, fontsize=11.5, loc="left")
    _bare(axes)


def _end(words: int, stage: int) -> float:
    """Where so many words of a stage end."""
    return STAGES[stage] + (words - 1) * PITCH + WORD[0]


def _box(axes: Axes, group: _Group, word: tuple[int, int], x: float, y: float, edge: str) -> None:
    row, key = word
    tint = TINTS[group.rows.index(row)]
    corner = (x, y - WORD[1] / 2)
    axes.add_patch(Rectangle(corner, *WORD, facecolor=tint, edgecolor=edge, linewidth=1.6, zorder=3))
    said = f"{key}, {key + 1}"
    axes.text(x + WORD[0] / 2, y, said, ha="center", va="center", fontsize=9, zorder=4)


def _arrow(axes: Axes, x: float, y: float, to_x: float, to_y: float, colour: str) -> None:
    arrow = FancyArrowPatch(
        (x, y), (to_x, to_y), arrowstyle="-|>", mutation_scale=10, linewidth=1.4, shrinkA=2, shrinkB=2, color=colour
    )
    axes.add_patch(arrow)


def price(pairs: Sequence[Pair], opcodes: Sequence[str]) -> Figure:
    """Both routes of each tile: instructions of a warp above, cycles below."""
    figure, grid = plt.subplots(
        2, len(pairs), figsize=(2.55 * len(pairs), 5.8), sharey="row", layout="constrained", squeeze=False
    )
    for (counts, cycles), pair in zip(grid.T, pairs, strict=True):
        counts.set_title(pair.label.replace(": ", "\n"), fontsize=9)
        _bars(counts, opcodes, [[route.counts[opcode] for opcode in opcodes] for route in pair.routes])
        units = ("stall\ncounts", "alone,\nestimated", "port,\nestimated")
        told = [[route.stalls, route.chain_cycles, route.port_cycles] for route in pair.routes]
        _bars(cycles, units, told)
    grid[0][0].set_ylabel("instructions of a warp and tile", fontsize=9.5)
    grid[1][0].set_ylabel("cycles of a warp and tile", fontsize=9.5)
    handles = [Patch(color=colour, label=name) for name, colour in zip(NAMES, (OCHRE, BLUE), strict=True)]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False, fontsize=10)
    return figure


def _bars(axes: Axes, names: Sequence[str], by_route: Sequence[Sequence[float]]) -> None:
    for at, (values, colour) in enumerate(zip(by_route, (OCHRE, BLUE), strict=True)):
        drawn: BarContainer = axes.bar(np.arange(len(names)) + (at - 0.5) * 0.42, values, 0.4, color=colour)
        axes.bar_label(drawn, fmt="%.0f", fontsize=7, padding=1)
    axes.set_xticks(range(len(names)), names, fontsize=8.5)
    axes.tick_params(axis="y", labelsize=8.5)
    axes.grid(axis="x", visible=False)
    axes.margins(y=0.12)
