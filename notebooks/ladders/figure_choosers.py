"""Figures of the ablation: what each way to choose costs, and what each constant is worth."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from microbench.report.figures import PALETTE
from notebooks.ladders.ablation import Cost, Worth, measured_of, worth_of
from notebooks.ladders.set_a import SHORT
from notebooks.ladders.sourced import GREY

BLUE, RED, GREEN, *_ = PALETTE
INK = "#222222"
COLOURS = dict(zip(SHORT, (INK, BLUE, RED), strict=True))
MOST = 0.065  # of the axis; what lies beyond is written at its edge
PERCENT = FuncFormatter(lambda value, _: f"{value:.0%}")
Costs = Mapping[str, Sequence[Cost]]  # by kernel


def choosers(of_gpu: Sequence[tuple[str, Costs]], source: str) -> Figure:
    """Mean regret and where 95 % of resampled means lie: a panel for each GPU, a row for each way to choose."""
    figure, panels = plt.subplots(1, len(of_gpu), figsize=(11.5, 5.3), sharey=True, layout="constrained")
    names = [each.name for each in of_gpu[0][1][""]]
    for axes, (gpu, costs) in zip(panels, of_gpu, strict=True):
        for place, (kernel, found) in enumerate(costs.items()):
            for row, each in enumerate(found):
                _mark(axes, row + 0.22 * (place - 1), each, COLOURS[kernel])
        axes.axvline(measured_of(costs[""]).regrets.mean, color=INK, linewidth=0.9, linestyle=(0, (4, 3)))
        axes.set(xlim=(-0.0012, MOST), ylim=(len(names) - 0.45, -0.55))
        axes.set_xlabel("mean regret: time lost to the fastest configuration", fontsize=9.5)
        axes.xaxis.set_major_formatter(PERCENT)
        axes.tick_params(axis="x", labelsize=9)
        axes.grid(visible=False, axis="y")
        axes.set_title(gpu, fontsize=10.5)
    panels[0].set_yticks(range(len(names)), names, fontsize=9.5)
    handles = [Line2D([], [], marker="o", color=COLOURS[each], label=f"among {said}") for each, said in _said()]
    handles += [
        Line2D([], [], marker="o", linestyle="", color=GREY, label="told apart from measured constants"),
        Line2D([], [], marker="o", linestyle="", color=GREY, markerfacecolor="white", label="not told apart"),
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=5, frameon=False, fontsize=8.5)
    figure.supxlabel(source, x=0.01, ha="left", fontsize=7, color=GREY)
    return figure


def _said() -> Sequence[tuple[str, str]]:
    return [(kernel, name if not kernel else f"the {name} forward's") for kernel, name in SHORT.items()]


def _mark(axes: Axes, row: float, cost: Cost, colour: str) -> None:
    mean, (low, high) = cost.regrets.mean, cost.interval
    if mean > MOST:
        axes.annotate(
            f"{mean:.0%} →", (MOST, row), xytext=(-4, 0), textcoords="offset points", ha="right", va="center",
            fontsize=9, color=colour,
        )  # fmt: skip
        return
    apart = cost.is_measured or cost.against[0] > 0 or cost.against[1] < 0
    axes.plot([low, high], [row, row], color=colour, linewidth=1.6)
    axes.plot(mean, row, "o", color=colour, markerfacecolor=colour if apart else "white", markersize=5.5)


def worths(of_gpu: Sequence[tuple[str, float, Sequence[Worth]]], source: str) -> Figure:
    """The mean regret with each constant halved (to the left) and doubled (to the right), by the first GPU's order.

    A line stands where the constants are as measured. What changes no pick on any of them is left out, and a GPU has no
    marks for a constant that no kernel reads which was timed on it.
    """
    moving = {each.name for _, _, found in of_gpu for each in found if each.changed != (0, 0)}
    shown = [name for name in dict.fromkeys(each.name for _, _, found in of_gpu for each in found) if name in moving]
    figure, panels = plt.subplots(
        1, len(of_gpu), figsize=(11.5, 1.9 + 0.27 * len(shown)), sharey=True, sharex=True, layout="constrained"
    )
    for axes, (gpu, measured, found) in zip(panels, of_gpu, strict=True):
        for row, name in enumerate(shown):
            if (worth := worth_of(found, name)) is None:
                continue
            halved, doubled = worth.regrets
            axes.plot([halved, measured, doubled], [row] * 3, color=GREY, linewidth=1.2)
            axes.plot(halved, row, "<", color=RED, markersize=7)
            axes.plot(doubled, row, ">", color=BLUE, markersize=7)
        axes.axvline(measured, color=INK, linewidth=0.9, linestyle=(0, (4, 3)))
        axes.set_xlabel("mean regret among all of ours", fontsize=9.5)
        axes.set_ylim(len(shown) - 0.4, -0.6)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.1%}"))
        axes.tick_params(axis="x", labelsize=9)
        axes.set_title(gpu, fontsize=11)
    panels[0].set_xlim(0, None)
    panels[0].set_yticks(range(len(shown)), shown, fontsize=9)
    handles = [
        Line2D([], [], marker="<", linestyle="", color=RED, label="halved"),
        Line2D([], [], marker=">", linestyle="", color=BLUE, label="doubled"),
        Line2D([], [], color=INK, linestyle=(0, (4, 3)), label="as measured"),
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=3, frameon=False, fontsize=9)
    figure.supxlabel(source, x=0.01, ha="left", fontsize=7, color=GREY)
    return figure
