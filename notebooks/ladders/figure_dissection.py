"""The figures of a dissection. Axes and rows are the same for every generation, so that figures of two compare.

The generation of the notebook is drawn in colour, the others pale.
"""

from collections.abc import Sequence

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, NullFormatter

from microbench.report.figures import PALETTE
from notebooks.ladders.dissection import (
    EXPONENTIALS,
    GENERATIONS,
    LEVELS,
    PATHS,
    Generation,
    Level,
    feeds,
    levels,
    quoted,
    softmax_share,
)
from notebooks.ladders.dissection_costs import costs
from notebooks.ladders.sourced import sourced

BLUE, RED, GREEN, *_ = PALETTE
PALE, INK, GREY = "#c3c9d0", "#222222", "#5c6670"
MARKS = ("o", "s", "D", "^")  # a generation each, in the order of GENERATIONS
PATH_COLOURS = dict(zip((name for name, _ in PATHS), (BLUE, GREEN, RED), strict=True))
HEAD_DIMS = (32, 64, 128, 256)


def ladder(shown: Generation) -> Figure:
    """Latency of each level, in cycles and in ns."""
    figure, (cycles, ns) = plt.subplots(1, 2, figsize=(11.5, 3.9), sharey=True, layout="constrained")
    for other, mark in zip(GENERATIONS, MARKS, strict=True):
        found = levels(other)
        colour, front = (BLUE, 3) if other == shown else (PALE, 2)
        for axes, values in ((cycles, _cycles(found)), (ns, [level.ns for level in found])):
            at = [(value, row) for row, value in enumerate(values) if value is not None]
            axes.plot(*zip(*at, strict=True), mark, color=colour, markersize=8, zorder=front)
            if other == shown:
                _named(axes, at)
    cycles.set(xlim=(10, 2000), xlabel="cycles of the SM")
    figure.suptitle(f"{shown.name}: how far memory is", fontsize=13, fontweight="bold")
    ns.set(xlim=(8, 1000), xlabel="ns, at the clock the cycles were counted at")
    for axes in (cycles, ns):
        _log(axes)
    known = {level.name for level in levels(shown) if level.cycles}
    cycles.set_yticks(range(len(LEVELS)), [name if name in known else f"{name}\n(absent)" for name, _ in LEVELS])
    cycles.set_ylim(len(LEVELS) - 0.4, -0.8)
    _key(figure, shown)
    of = {each: [level.cycles.source for level in levels(each) if level.cycles] for each in GENERATIONS}
    return sourced(figure, of[shown], (source for each in GENERATIONS if each != shown for source in of[each]))


def _cycles(found: Sequence[Level]) -> list[float | None]:
    return [level.cycles.value if level.cycles else None for level in found]


def _named(axes: Axes, at: Sequence[tuple[float, float]]) -> None:
    for value, row in at:
        axes.annotate(
            f"{value:.0f}", (value, row), xytext=(0, 8), textcoords="offset points", ha="center", fontsize=9, color=BLUE
        )


def instructions(shown: Generation) -> Figure:
    """Cycles of each instruction: ptxas's count as a bar, what was measured or published as a mark."""
    found = costs(shown)
    figure, axes = plt.subplots(figsize=(9.5, 4.9), layout="constrained")
    for row, cost in enumerate(found):
        if cost.static is not None:
            axes.barh(row, cost.static - 1, left=1, height=0.62, color=PALE if cost.least else BLUE)
        if cost.latency is not None:
            inside = "white" if cost.chained else RED
            axes.plot(cost.latency.value, row, "o", color=RED, markerfacecolor=inside, markersize=8, zorder=3)
        furthest = max(cost.static or 1, cost.latency.value if cost.latency else 1)
        said = _said(cost.static, cost.least, cost.latency.value if cost.latency else None) if cost.here else ""
        text = said or f"no instruction of {shown.profile.arch}"
        axes.annotate(
            text, (furthest, row), xytext=(9, 0), textcoords="offset points", va="center", fontsize=9,
            color=INK if said else GREY, style="normal" if said else "italic",
        )  # fmt: skip
    axes.set(xlim=(1, 700), xlabel="cycles from issue to the first use of the result")
    axes.set_title(f"{shown.name}: what an instruction costs")
    _log(axes)
    axes.set_yticks(range(len(found)), [cost.label for cost in found], fontsize=9.5)
    axes.set_ylim(len(found) - 0.4, -0.6)
    handles = (
        Patch(color=BLUE, label="ptxas counts it"),
        Patch(color=PALE, label="at least, then a scoreboard"),
        Line2D([], [], marker="o", linestyle="", color=RED, label="measured" if shown.measured else "published"),
        *([_CHAINED] if any(cost.chained for cost in found) else []),
    )
    axes.legend(handles=handles, loc="upper right", fontsize=9)
    return sourced(figure, ("ptxas of NVRTC for the bars", *(each.latency.source for each in found if each.latency)))


_CHAINED = Line2D(
    [], [], marker="o", linestyle="", color=RED, markerfacecolor="white", label="published: of each in a chain"
)


def _said(static: int | None, least: bool, latency: float | None) -> str:
    counted = "" if static is None else f"{'≥ ' if least else ''}{static}"
    return ", ".join(filter(None, (counted, f"{latency:.3g}" if latency else "")))


def feeding(shown: Generation) -> Figure:
    """The roof of each path: FLOP a clock that it can feed, by the rows of Q that each read of K and V serves.

    A key of D elements costs 4 D FLOP a row of Q, and the 4 D bytes of its K and V in half precision are read once for
    all rows that share the read: FLOP per byte are rows.
    """
    figure, axes = plt.subplots(figsize=(9.5, 5.0), layout="constrained")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.set(xlim=(1, 1024), ylim=(8, 16384))
    for other in GENERATIONS:
        axes.axhline(other.flops_per_clk, color=INK if other == shown else PALE, linewidth=1.8 if other == shown else 1)
        axes.annotate(
            f"{other.name}: {other.flops_per_clk:.0f}", (1.08, other.flops_per_clk), xytext=(0, 3),
            textcoords="offset points", fontsize=9, color=INK if other == shown else GREY,
        )  # fmt: skip
    for path in feeds(shown):
        colour = PATH_COLOURS[path.name]
        axes.plot([1, path.asks], [path.bytes_per_clk, path.flops_per_clk], color=colour, linewidth=2)
        axes.plot(path.asks, path.flops_per_clk, "o", color=colour, markersize=8, zorder=3)
        axes.plot([path.asks] * 2, [8, path.flops_per_clk], color=colour, linewidth=1, linestyle=(0, (4, 3)))
        axes.annotate(
            f"{path.asks:.0f}", (path.asks, 8), xytext=(4, 5), textcoords="offset points", fontsize=10, color=colour
        )
    axes.plot(shown.rows, 8 * 2**1.7, "^", color=INK, markersize=10, zorder=4, clip_on=False)
    axes.set(
        xlabel="rows of Q that one read of K and V serves = FLOP per byte",
        ylabel="FLOP a clock and SM",
        title=f"{shown.name}: what feeds the tensor core",
    )
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    handles = [
        Line2D([], [], color=PATH_COLOURS[path.name], marker="o", label=f"{path.name}: {path.bytes_per_clk:.3g} B/clk")
        for path in feeds(shown)
    ]
    handles.append(
        Line2D([], [], marker="^", linestyle="", color=INK, markersize=10, label=f"{shown.product}: {shown.rows} rows")
    )
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    own = (*_of(shown, shown.tensor), *(path.quoted.source for path in feeds(shown)))
    return sourced(figure, own, (source for each in GENERATIONS if each != shown for source in _of(each, each.tensor)))


def softmax(shown: Generation) -> Figure:
    """Clocks of the exponentials over those of the products, by head dim."""
    figure, axes = plt.subplots(figsize=(9.5, 3.8), layout="constrained")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    for other, mark in zip(GENERATIONS, MARKS, strict=True):
        mine = other == shown
        shares = [softmax_share(other, dim) for dim in HEAD_DIMS]
        axes.plot(HEAD_DIMS, shares, marker=mark, color=BLUE if mine else PALE, linewidth=2, zorder=3 if mine else 2)
        axes.annotate(
            f"{other.name}", (HEAD_DIMS[-1], shares[-1]), xytext=(8, 0), textcoords="offset points", va="center",
            fontsize=9, color=BLUE if mine else GREY,
        )  # fmt: skip
    axes.axhline(1, color=INK, linewidth=1.2, linestyle=(0, (4, 3)))
    axes.annotate("above: the exponential units are the limit", (320, 1.08), ha="right", fontsize=9, color=INK)
    axes.set(xlim=(28, 330), ylim=(1 / 32, 8), xlabel="head dim", ylabel="exponentials over products, in clocks")
    axes.set_xticks(HEAD_DIMS, [str(dim) for dim in HEAD_DIMS])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_title(f"{shown.name}: softmax beside the products")
    of = {each: _of(each, each.tensor, EXPONENTIALS) for each in GENERATIONS}
    return sourced(figure, of[shown], (source for each in GENERATIONS if each != shown for source in of[each]))


def _of(generation: Generation, *constants: str) -> tuple[str, ...]:
    """Who gave these constants of a generation."""
    return tuple(quoted(generation.profile[name]).source for name in constants)


def _log(axes: Axes) -> None:
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _key(figure: Figure, shown: Generation) -> None:
    handles = [
        Line2D([], [], marker=mark, linestyle="", color=BLUE if each == shown else PALE, label=each.name)
        for each, mark in zip(GENERATIONS, MARKS, strict=True)
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False, fontsize=9)
