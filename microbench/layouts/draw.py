"""Layouts as pictures. A cell is an element; its number is the lane or thread that holds it, its tint the register.

Tints: Paul Tol's light scheme, which keeps apart for colour-blind eyes and carries black text.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from microbench.layouts import ROW_BYTES, Fragment, Product
from microbench.layouts.derive import Numbers

TINTS = ("#77aadd", "#eedd88", "#ffaabb", "#44bb99", "#ee8866", "#99ddff", "#bbcc33", "#dddddd")
INK = "#222222"
# In inches: a cell, the strip of the title, what stands left of and above a matrix, and that with what stands behind.
CELL = (0.34, 0.24)
TITLE = 0.4
MARGIN = (0.55, 0.35)
GAP = (0.75, 0.7)
SMALL = 7.5


def _tint(number: int) -> str:
    return TINTS[number % len(TINTS)]


def _cells(axes: Axes, colours: Numbers, texts: Numbers | None, size: float = SMALL) -> None:
    rows, columns = colours.shape
    line = 0.2 if texts is None else 0.6
    for (row, column), number in np.ndenumerate(colours):
        axes.add_patch(Rectangle((column, row), 1, 1, facecolor=_tint(int(number)), edgecolor="white", linewidth=line))
        if texts is not None:
            axes.text(column + 0.5, row + 0.53, str(texts[row, column]), ha="center", va="center", fontsize=size)
    axes.set(xlim=(0, columns), ylim=(rows, 0))
    axes.grid(False)
    axes.spines[:].set_visible(False)


def _outline(axes: Axes, where: Numbers) -> None:
    """A bold frame round each place where the mask holds."""
    for row, column in np.argwhere(where):
        axes.add_patch(Rectangle((column, row), 1, 1, facecolor="none", edgecolor=INK, linewidth=1.8, zorder=3))


def _number_axes(axes: Axes, row_name: str, column_name: str, every: int = 1, first_row: int = 0) -> None:
    rows, columns = round(axes.get_ylim()[0]), round(axes.get_xlim()[1])
    axes.set_xticks(np.arange(0, columns, every) + 0.5, [str(n) for n in range(0, columns, every)], fontsize=SMALL)
    labels = [str(first_row + n) for n in range(0, rows, every)]
    axes.set_yticks(np.arange(0, rows, every) + 0.5, labels, fontsize=SMALL)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.tick_params(length=0, pad=1)
    axes.set_xlabel(column_name, fontsize=9, labelpad=2)
    axes.set_ylabel(row_name, fontsize=9, rotation=0, ha="right", va="center", labelpad=4)


@dataclass(frozen=True)
class Panel:
    """One matrix of a figure: its caption, what its rows and columns are, and the number of its first row."""

    fragment: Fragment
    caption: str
    rows: str
    columns: str
    first_row: int = 0

    @property
    def size(self) -> tuple[float, float]:
        rows, columns = self.fragment.shape
        return columns * CELL[0], rows * CELL[1]


def _canvas(width: float, height: float, title: str) -> Figure:
    """A figure of so many inches below its title."""
    figure = plt.figure(figsize=(width, height + TITLE))
    figure.text(0.5, 1 - 0.12 / (height + TITLE), title, ha="center", va="top", fontsize=11.5, weight="bold")
    return figure


def _place(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Axes of a size in inches, whose upper left corner is so far from that of the figure, title not counted."""
    across, down = figure.get_size_inches()
    return figure.add_axes((left / across, (down - TITLE - top - height) / down, width / across, height / down))


def _panel(figure: Figure, panel: Panel, left: float, top: float, mark: int) -> None:
    """Tinted by register, numbered by lane, the elements of lane `mark` framed."""
    axes = _place(figure, left, top, *panel.size)
    _cells(axes, panel.fragment.register, panel.fragment.thread)
    _outline(axes, panel.fragment.thread == mark)
    _number_axes(axes, panel.rows, panel.columns, first_row=panel.first_row)
    axes.text(0, panel.fragment.shape[0] + 0.3, panel.caption, fontsize=9, weight="bold", va="top")


def product(shown: Product, title: str, mark: int) -> Figure:
    """A beside D, B above D, as a product is written; the elements of lane `mark` are framed in all three."""

    def panel(fragment: Fragment, rows: str, columns: str) -> Panel:
        return Panel(fragment, f"{fragment.name}: {' x '.join(map(str, fragment.shape))}", rows, columns)

    a, b, d = panel(shown.a, "m", "k"), panel(shown.b, "k", "n"), panel(shown.d, "m", "n")
    across, down = a.size[0] + GAP[0], b.size[1] + GAP[1]
    figure = _canvas(across + d.size[0] + GAP[0], down + d.size[1] + GAP[1], title)
    _panel(figure, a, MARGIN[0], MARGIN[1] + down, mark)
    _panel(figure, b, MARGIN[0] + across, MARGIN[1], mark)
    _panel(figure, d, MARGIN[0] + across, MARGIN[1] + down, mark)
    key = _place(figure, 0, MARGIN[1], across, b.size[1])
    registers = range(int(max(f.register.max() for f in (shown.a, shown.b, shown.d))) + 1)
    _key(key, [(number, f"register {number}") for number in registers], f"number: lane; frame: lane {mark}")
    return figure


def _key(axes: Axes, entries: Sequence[tuple[int, str]], title: str) -> None:
    patches = [Patch(facecolor=_tint(number), label=label) for number, label in entries]
    axes.legend(handles=patches, title=title, loc="center", frameon=False, fontsize=8.5, title_fontsize=9, ncols=2)
    axes.set_axis_off()


def side_by_side(panels: Sequence[Panel], title: str, mark: int) -> Figure:
    """Fragments in a row, tinted by register, numbered by lane; the elements of lane `mark` are framed."""
    width = sum(panel.size[0] + GAP[0] for panel in panels)
    figure = _canvas(width, max(panel.size[1] for panel in panels) + GAP[1], title)
    left = MARGIN[0]
    for panel in panels:
        _panel(figure, panel, left, MARGIN[1], mark)
        left += panel.size[0] + GAP[0]
    return figure


def quad_pairs(pairs: Sequence[Product], title: str) -> Figure:
    owner = np.full((1, 32), -1)
    for number, pair in enumerate(pairs):
        owner[0, np.unique(pair.d.thread)] = number
    figure, axes = plt.subplots(figsize=(32 * CELL[0], 1.15))
    _cells(axes, owner, np.arange(32)[None], size=8.5)
    axes.set_xticks([])
    axes.set_yticks([])
    patches = [Patch(facecolor=_tint(number), label=f"product {number}") for number in range(len(pairs))]
    axes.legend(handles=patches, loc="upper center", bbox_to_anchor=(0.5, -0.05), ncols=4, frameon=False, fontsize=9)
    axes.set_title(title, fontsize=11.5)
    return figure


def warpgroup(d: Fragment, title: str, mark: int) -> Figure:
    """The accumulators of four warps: whose rows are whose, and the elements of thread `mark` framed."""
    rows, columns = d.shape
    figure, axes = plt.subplots(figsize=(columns * 0.22 + 1.6, rows * 0.08 + 1.0))
    _cells(axes, d.thread // 32, None)
    _outline(axes, d.thread == mark)
    _number_axes(axes, "m", "n", every=8)
    for warp in np.unique(d.thread // 32):
        middle = np.argwhere(d.thread[:, 0] // 32 == warp).mean() + 0.5
        axes.text(columns + 0.6, middle, f"warp {warp}", va="center", fontsize=9)
    axes.set_title(title, fontsize=11.5, pad=14)
    return figure


def swizzled_tile(cells: Numbers, title: str) -> Figure:
    """Shared memory as it lies, a row of 128 bytes a line: which 16-byte chunk of k stands where, tinted by slice.

    Args:
        cells: (8, 64), the 16-bit cell of element (n, k).
        title: of the figure.
    """
    per_row, per_chunk = ROW_BYTES // 2, 8
    logical = np.empty((len(cells), per_row // per_chunk), np.int64)
    for (_, k), cell in np.ndenumerate(cells):
        logical[cell // per_row, cell % per_row // per_chunk] = k // per_chunk
    figure, axes = plt.subplots(figsize=(7.6, 3.5))
    _cells(axes, logical // 2, logical, size=11)
    _outline(axes, logical == 0)
    axes.set_xticks(np.arange(8) + 0.5, [f"{4 * n} to {4 * n + 3}" for n in range(8)], fontsize=8)
    axes.set_yticks(np.arange(8) + 0.5, [str(n) for n in range(8)], fontsize=8)
    axes.tick_params(length=0, pad=2)
    axes.set_xlabel("banks of shared memory", fontsize=9)
    axes.set_ylabel("row of B (n)", fontsize=9)
    patches = [Patch(facecolor=_tint(n), label=f"slice {n}: k {16 * n} to {16 * n + 15}") for n in range(4)]
    axes.legend(handles=patches, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=8.5)
    axes.set_title(title, fontsize=11.5)
    return figure


def tensor_memory(d: Fragment, reach: Numbers, columns: int, title: str, mark: int) -> Figure:
    """Every lane and column of tensor memory, tinted by the warps that reach them; `d` and a thread's row framed.

    Args:
        d: an accumulator that starts at lane 0 and column 0.
        reach: (warps, quarters), 1 where the warp reaches that quarter of the lanes.
        columns: of tensor memory.
        title: of the figure.
        mark: the thread of a warpgroup whose elements are framed.
    """
    lanes, width = d.shape
    figure, axes = plt.subplots(figsize=(8.6, 3.9))
    height = lanes // reach.shape[1]
    for quarter in range(reach.shape[1]):
        first = quarter * height
        axes.add_patch(Rectangle((0, first), columns, height, facecolor=_tint(quarter), edgecolor="white"))
        warps = " and ".join(map(str, np.flatnonzero(reach[:, quarter])))
        label = f"warps {warps}: lanes {first} to {first + height - 1}"
        axes.text((width + columns) / 2, first + height / 2, label, ha="center", va="center", fontsize=9.5)
    (lane,) = np.unique(np.argwhere(d.thread == mark)[:, 0])
    axes.add_patch(Rectangle((0, lane), width, 1, facecolor=INK, edgecolor=INK))
    axes.text(width + 4, lane + 0.5, f"thread {mark}: one row", ha="left", va="center", fontsize=8.5)
    axes.add_patch(Rectangle((0, 0), width, lanes, facecolor="none", edgecolor=INK, linewidth=2))
    axes.text(width + 4, height / 2, f"D, {lanes} x {width}", ha="left", va="center", fontsize=9.5, weight="bold")
    axes.set(xlim=(-2, columns), ylim=(lanes, -2))
    axes.set_xticks(range(0, columns + 1, 64), [str(n) for n in range(0, columns + 1, 64)], fontsize=9)
    axes.set_yticks(range(0, lanes + 1, height), [str(n) for n in range(0, lanes + 1, height)], fontsize=9)
    axes.set_xlabel("column (32 bits)", fontsize=9)
    axes.set_ylabel("lane", fontsize=9)
    axes.grid(False)
    axes.set_title(title, fontsize=11.5)
    return figure
