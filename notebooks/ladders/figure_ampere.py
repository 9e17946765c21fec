"""What the Ampere kernel's notebook draws: speed by cell, units by rung, the schedule of a round, and the ladder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from attention.compare.cells import Cell
from microbench.report.figures import PALETTE
from notebooks.ladders.schedule import Schedule, Unit

BLUE, RED, GREEN, VIOLET, OCHRE, GREY = PALETTE
PALE = "#b9cbe2"


@dataclass(frozen=True)
class Level:
    """A line across a figure of speeds: TFLOPS."""

    label: str
    tflops: float


def speeds(cells: Mapping[Cell, Mapping[str, float]], levels: Sequence[Level], colours: Mapping[str, str]) -> Figure:
    """TFLOPS of each label in each cell of the grid, head dim by mask; a cell may lack a label."""
    dims = sorted({cell.problem.head_dim for cell in cells})
    figure, grid = plt.subplots(2, len(dims), figsize=(11.5, 6.4), sharey=True, layout="constrained", squeeze=False)
    for row, causal in zip(grid, (False, True), strict=True):
        for axes, dim in zip(row, dims, strict=True):
            wanted = {c: v for c, v in cells.items() if (c.problem.head_dim, c.problem.causal) == (dim, causal)}
            width = 0.8 / len(colours)
            for at, (label, colour) in enumerate(colours.items()):
                places = [
                    i + (at - (len(colours) - 1) / 2) * width for i, v in enumerate(wanted.values()) if label in v
                ]
                heights = [v[label] for v in wanted.values() if label in v]
                axes.bar(places, heights, width, color=colour)
            axes.set_xticks(range(len(wanted)), [f"{cell.problem.seq_q:,}" for cell in wanted])
            axes.grid(axis="x", visible=False)
            axes.set_title(f"head dim {dim}, {'causal' if causal else 'full'}", fontsize=11)
            for level in levels:
                axes.axhline(level.tflops, color="#333333", linewidth=1, linestyle=(0, (4, 3)))
                if axes is grid[0][0]:
                    said = (0.02, level.tflops + 8)
                    axes.annotate(level.label, said, xycoords=("axes fraction", "data"), fontsize=8, va="bottom")
        row[0].set(ylabel="TFLOPS", ylim=(0, 1.08 * max(level.tflops for level in levels)))
    grid[-1][len(dims) // 2].set_xlabel("sequence length")
    handles = [Patch(color=colour, label=label) for label, colour in colours.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False)
    return figure


def units(by_dim: Mapping[int, Mapping[str, Mapping[str, float]]], colours: Mapping[str, str]) -> Figure:
    """How long each unit is asked for, products = 1: by head dim, by rung, by unit. A rung may lack a unit."""
    heights = [len(rungs) for rungs in by_dim.values()]
    figure, column = plt.subplots(
        len(by_dim),
        1,
        figsize=(9.5, 1.3 + 0.46 * sum(heights)),
        sharex=True,
        height_ratios=heights,
        layout="constrained",
    )
    for axes, (dim, rungs) in zip(column, by_dim.items(), strict=True):
        width = 0.8 / len(colours)
        for i, asked in enumerate(rungs.values()):
            for at, (unit, colour) in enumerate(colours.items()):
                if unit in asked:
                    axes.barh(i + (at - (len(colours) - 1) / 2) * width, asked[unit], width, color=colour)
        axes.set_yticks(range(len(rungs)), list(rungs), fontsize=9)
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)
        axes.axvline(1, color="#333333", linewidth=1.2)
        axes.set_title(f"head dim {dim}", fontsize=11, loc="left")
    column[-1].set_xlabel("cycles that a slice asks of the unit, over those of its products")
    handles = [Patch(color=colour, label=unit) for unit, colour in colours.items()]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles), frameon=False)
    return figure


LANES: tuple[tuple[str, tuple[tuple[Unit, str], ...]], ...] = (
    ("tensor cores", (("scores", BLUE), ("values", RED))),
    ("exponentials", (("exponentials", GREEN),)),
    ("shared memory", (("K and Q", "#6f9bd1"), ("V", "#dd9a84"))),
    ("cp.async", (("fetch", OCHRE),)),
    ("the rest", (("other", GREY),)),
)


def timeline(rounds: Mapping[str, Schedule], busy: Mapping[Unit, float], until: int | None = None) -> Figure:
    """Rounds of a main loop against ptxas's clock. A mark is as long as its unit is `busy`, in cycles of a sub-core.

    `until` cuts the axis, in cycles.
    """
    figure, column = plt.subplots(
        len(rounds), 1, figsize=(12.5, 0.7 + 2.1 * len(rounds)), sharex=True, layout="constrained", squeeze=False
    )
    for axes, (title, planned) in zip(column[:, 0], rounds.items(), strict=True):
        for lane, (_, kinds) in enumerate(LANES):
            for unit, colour in kinds:
                marks = [(issue.cycle, busy.get(unit, 1.0)) for issue in planned.issues if issue.unit == unit]
                axes.broken_barh(marks, (lane - 0.38, 0.76), facecolors=colour, linewidth=0)
        axes.set_yticks(range(len(LANES)), [name for name, _ in LANES], fontsize=9)
        axes.set_ylim(len(LANES) - 0.4, -0.6)
        axes.set_title(title, fontsize=11, loc="left")
        axes.grid(axis="y", visible=False)
    longest = max(planned.cycles for planned in rounds.values())
    column[-1, 0].set(xlim=(0, min(until or longest, longest)), xlabel="cycles by ptxas's stall counts, one warp")
    named = {"scores": "Q Kᵀ", "values": "p V", "K and Q": "ldmatrix of K and Q", "V": "ldmatrix of V"}
    handles = [Patch(color=c, label=named[unit]) for _, kinds in LANES for unit, c in kinds if unit in named]
    figure.legend(handles=handles, loc="outside upper right", ncols=4, frameon=False, fontsize=9)
    return figure


@dataclass(frozen=True)
class Bar:
    """A rung as drawn: TFLOPS, or `lacks`; `step` for one that leads up to the whole kernel.

    `gain` is its speed over that of the rung beside it, None for the first; `allowed` what the busiest unit leaves.
    """

    name: str
    step: bool
    tflops: float | None
    gain: float | None
    allowed: float
    lacks: str = ""


def ladder(panels: Mapping[str, Sequence[Bar]]) -> Figure:
    """Rungs of some cells: steps up to the whole kernel, then what it is without an idea, and what was rejected."""
    heights = [len(bars) + 1 for bars in panels.values()]
    figure, column = plt.subplots(
        len(panels), 1, figsize=(10.5, 0.9 + 0.26 * sum(heights)), sharex=True, height_ratios=heights,
        layout="constrained", squeeze=False,
    )  # fmt: skip
    for axes, (title, bars) in zip(column[:, 0], panels.items(), strict=True):
        for at, bar in enumerate(bars):
            _rung(axes, at, bar)
        axes.set_yticks(range(len(bars)), [bar.name for bar in bars], fontsize=8.5)
        axes.set_ylim(len(bars) - 0.4, -0.6)
        axes.grid(axis="y", visible=False)
        axes.set_title(title, fontsize=11, loc="left")
    column[-1, 0].set_xlabel("TFLOPS")
    handles = [
        Patch(color=BLUE, label="step up"),
        Patch(color=PALE, label="beside the steps"),
        Line2D([], [], color=RED, linewidth=2, label="what the busiest unit leaves"),
    ]
    figure.legend(handles=handles, loc="outside upper right", ncols=3, frameon=False, fontsize=9)
    return figure


def _rung(axes: Axes, at: int, bar: Bar) -> None:
    axes.plot([bar.allowed, bar.allowed], [at - 0.38, at + 0.38], color=RED, linewidth=2)
    if bar.tflops is None:
        axes.annotate(bar.lacks, (4, at), fontsize=8, va="center", style="italic", color=GREY)
        return
    axes.barh(at, bar.tflops, 0.74, color=BLUE if bar.step else PALE)
    said = f"{bar.tflops:.0f}" + (f"   × {bar.gain:.2f}" if bar.gain else "")
    axes.annotate(said, (4, at), fontsize=8, va="center", color="white" if bar.step else "#222222")
