"""Figures about instructions: a listing with its control bits, static latencies, and how much one instruction does."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from microbench.report.figures import PALETTE
from microbench.sass.instruction import STALL_MAX, Instruction
from microbench.sass.listing import waits
from microbench.verify.tables import LatencyRow

ROW = 0.215  # inches
INK, QUIET = "#222222", "#5c6670"
DEEPEST = 32.0  # cycles of the darkest cell of a latency table
CHOSEN = "#fff3cc"  # behind the rows that a listing is about
SCOREBOARDS = 6

# Where the columns of a listing stand, in characters of its font.
_ADDRESS, _STALL, _YIELD, _BOARDS, _REUSE, _TEXT = 0.0, 5.5, 15.0, 18.0, 33.0, 38.5
_BAR_WIDTH, _BOARD_WIDTH = 5.0, 2.2


def listing(instructions: Sequence[Instruction], chosen: Sequence[str], title: str) -> Figure:
    """Instructions with the control bits of each, one a line; those whose head is in `chosen` stand out.

    A line from a triangle to a ball joins the instruction that raises a scoreboard with the one that waits for it:
    filled where the result must stand, hollow where the operands must have been read.
    """
    count = len(instructions)
    width = _TEXT + max(len(instruction.text) for instruction in instructions) + 1
    figure, axes = plt.subplots(figsize=(width * 0.083, (count + 2.2) * ROW))
    for row, instruction in enumerate(instructions):
        _line(axes, row, instruction, instruction.head in chosen, width)
    colours = [PALETTE[board] for board in range(SCOREBOARDS)]
    for wait in waits(instructions):
        x, colour = _board(wait.scoreboard), colours[wait.scoreboard]
        axes.plot([x, x], [wait.setter, wait.waiter], color=colour, linewidth=1.2, alpha=0.75, zorder=2)
    for row, instruction in enumerate(instructions):
        control = instruction.control
        both = control.write_barrier is not None and control.write_barrier == control.read_barrier
        for board, fill, side in ((control.write_barrier, True, -0.5), (control.read_barrier, False, 0.5)):
            if board is not None:
                x, face = _board(board) + both * side, colours[board] if fill else "white"
                axes.plot(x, row, "v", color=colours[board], markerfacecolor=face, markersize=6, zorder=3)
        for board in instruction.waits:
            axes.plot(_board(board), row, "o", color=colours[board], markersize=5.5, zorder=4)
    _heads(axes)
    axes.set(xlim=(-1, width), ylim=(count - 0.4, -2.0))
    axes.set_axis_off()
    axes.set_title(title, fontsize=11.5, loc="left")
    axes.legend(handles=_signs(), loc="upper left", bbox_to_anchor=(0, 0), ncols=3, frameon=False, fontsize=8)
    return figure


def _board(scoreboard: int) -> float:
    return _BOARDS + _BOARD_WIDTH * (scoreboard + 0.5)


def _line(axes: Axes, row: int, instruction: Instruction, chosen: bool, width: float) -> None:
    control = instruction.control
    if chosen or row % 2:
        shade = CHOSEN if chosen else "#f6f7f8"
        axes.add_patch(Rectangle((-1, row - 0.5), width + 1, 1, facecolor=shade, linewidth=0, zorder=0))
    bar = control.stall / STALL_MAX * _BAR_WIDTH
    axes.add_patch(Rectangle((_STALL + 2.5, row - 0.3), bar, 0.6, facecolor="#a9bcd3", zorder=1))
    small: dict[str, Any] = {"fontsize": 7.6, "va": "center", "family": "monospace", "zorder": 5}
    axes.text(_ADDRESS, row, f"{instruction.address:04x}", color=QUIET, **small)
    axes.text(_STALL + 2, row, str(control.stall), ha="right", **small)
    axes.text(_YIELD + 0.7, row, "y" if control.yield_ else "", ha="center", **small)
    slots = "".join(str(slot) for slot in range(4) if control.reuse >> slot & 1)
    axes.text(_REUSE + 1.5, row, slots, ha="center", **small)
    weight = "bold" if chosen else "normal"
    axes.text(_TEXT, row, instruction.text, weight=weight, **small)


def _heads(axes: Axes) -> None:
    small: dict[str, Any] = {"fontsize": 8, "va": "center", "color": QUIET}
    places = ((_ADDRESS, "left", "at"), (_STALL, "left", "stall"), (_YIELD + 0.7, "center", "yield"))
    boards = [(_board(board), "center", str(board)) for board in range(SCOREBOARDS)]
    for x, side, text in (*places, *boards, (_REUSE + 1.5, "center", "reuse"), (_TEXT, "left", "instruction")):
        axes.text(x, -0.95, text, ha=side, **small)
    axes.text(_board(2) + _BOARD_WIDTH / 2, -1.75, "scoreboard", ha="center", **small)


def _signs() -> list[Line2D]:
    def sign(marker: str, face: str, label: str) -> Line2D:
        return Line2D([], [], color=QUIET, marker=marker, markerfacecolor=face, linestyle="", markersize=6, label=label)

    return [
        sign("v", QUIET, "raises it until the result stands"),
        sign("v", "white", "until its operands are read"),
        sign("o", QUIET, "waits for it"),
    ]


def latency_table(rows: Sequence[LatencyRow], archs: Sequence[str], measured: Mapping[str, float], gpu: str) -> Figure:
    """Static latencies, an instruction a row and an architecture a column, and beside them what `gpu` measured.

    Cells where the hardware decides (a scoreboard) are empty but for the least; `measured` is by instruction, cycles.
    """
    names = list(dict.fromkeys(row.instruction for row in rows))
    cells = {(row.instruction, row.arch): row for row in rows}
    figure, axes = plt.subplots(figsize=(0.86 * (len(archs) + 3.4), 0.27 * len(names) + 1.0))
    shades = plt.get_cmap("YlGnBu")
    for y, name in enumerate(names):
        for x, arch in enumerate(archs):
            if (name, arch) in cells:
                _latency(axes, x, y, cells[name, arch], shades)
        if name in measured:
            text = f"{measured[name]:.1f}".removesuffix(".0")
            axes.text(len(archs) + 0.7, y + 0.5, text, ha="center", va="center", fontsize=9, weight="bold")
    axes.axvline(len(archs) + 0.1, color=QUIET, linewidth=0.8)
    axes.set(xlim=(0, len(archs) + 1.4), ylim=(len(names), 0))
    axes.set_xticks([*(np.arange(len(archs)) + 0.5), len(archs) + 0.7], [*archs, f"{gpu},\nmeasured"], fontsize=9)
    axes.set_yticks(np.arange(len(names)) + 0.5, names, fontsize=9)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.grid(False)
    axes.spines[:].set_visible(False)
    title = "Cycles until a dependent instruction issues (sb: a scoreboard decides, and this is the least)"
    axes.set_title(title, fontsize=10.5)
    return figure


def _latency(axes: Axes, x: int, y: int, row: LatencyRow, shades: Colormap) -> None:
    least = min(map(int, row.cycles.split()))
    waits_for_hardware = row.scoreboard == "yes"
    share = min(least / DEEPEST, 1.0)
    face = "#f1f2f3" if waits_for_hardware else shades(0.08 + 0.72 * share)
    axes.add_patch(Rectangle((x, y), 1, 1, facecolor=face, edgecolor="white"))
    text = "/".join(row.cycles.split())
    text = f"sb {text}" if waits_for_hardware else f"{text}*" if row.scoreboard == "in part" else text
    dark = not waits_for_hardware and share > 0.7
    colour = QUIET if waits_for_hardware else "white" if dark else INK
    axes.text(x + 0.5, y + 0.5, text, ha="center", va="center", fontsize=8.5, color=colour)


@dataclass(frozen=True)
class Work:
    """One instruction: the FLOP it does, and the FLOP that the tensor cores of an SM do in a clock."""

    label: str
    flops: float
    flops_per_clk_sm: float
    measured: bool = False


CYCLES = (1, 2, 8, 32, 128)


def work(instructions: Sequence[Work], title: str) -> Figure:
    """FLOP of an instruction against those of an SM and clock; on a dotted line, all keep the SM busy equally long."""
    figure, axes = plt.subplots(figsize=(8.6, 4.8))
    for one in instructions:
        colour = PALETTE[1] if one.measured else PALETTE[0]
        face = colour if one.measured else "white"
        axes.plot(one.flops, one.flops_per_clk_sm, "o", color=colour, markerfacecolor=face, markersize=8, zorder=3)
        beside = (9, 4) if one.measured else (9, -12)
        axes.annotate(one.label, (one.flops, one.flops_per_clk_sm), beside, textcoords="offset points", fontsize=8.5)
    ends = np.array([2.0**9, 2.0**22])
    for cycles in CYCLES:
        axes.plot(ends, ends / cycles, color=QUIET, linewidth=0.8, linestyle=":", zorder=1)
        text = f"{cycles} cycle{'s' * (cycles > 1)}"
        plain = {"facecolor": "white", "linewidth": 0, "pad": 1.5}
        axes.text(10600 * cycles, 10600, text, fontsize=8, color=QUIET, ha="center", va="center", bbox=plain)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.set(xlim=(2**10, 2**24), ylim=(700, 12500))
    powers = range(10, 25, 2)
    axes.set_xticks([2**n for n in powers], [f"{2**n:,}".replace(",", " ") for n in powers], fontsize=8.5)
    axes.set_yticks([2**n for n in range(10, 14)], [str(2**n) for n in range(10, 14)], fontsize=8.5)
    axes.minorticks_off()
    axes.set(xlabel="FLOP of one instruction", ylabel="FLOP of one SM and clock")
    axes.legend(
        handles=[
            Line2D([], [], marker="o", linestyle="", color=PALETTE[0], markerfacecolor="white", label="rated"),
            Line2D([], [], marker="o", linestyle="", color=PALETTE[1], label="measured"),
        ],
        loc="lower right",
        fontsize=9,
    )
    axes.set_title(title, fontsize=11.5)
    return figure
