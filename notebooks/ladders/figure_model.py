"""Figures of the model beside what was timed: what a prediction is made of, and how far every prediction is off."""

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from attention.campaign.posed import CLASSES
from microbench.report.figures import PALETTE
from notebooks.ladders.set_a import KERNELS, SHORT, Prediction, named, worst
from notebooks.ladders.sourced import GREY
from notebooks.ladders.stack import Layer

BLUE, RED, *_ = PALETTE
PALE, INK = "#c3d3e6", "#222222"
MICRO = 1e6
BAND = 0.15  # that the mean error over all configurations may have
COLOURS = dict(zip(KERNELS, (BLUE, RED), strict=True))


@dataclass(frozen=True)
class Stacked:
    """A prediction's layers, and the medians of each campaign beside them, in seconds."""

    title: str
    layers: tuple[Layer, ...]
    measured: tuple[float, ...]


def stacked(shown: Sequence[Stacked], source: str) -> Figure:
    """A panel each: one term a row, beginning where those before it end; the measured time below."""
    rows = max(len(each.layers) for each in shown) + 1
    figure, panels = plt.subplots(1, len(shown), figsize=(11.5, 1.3 + 0.27 * rows), layout="constrained")
    for axes, each in zip(panels, shown, strict=True):
        _waterfall(axes, each)
    handles = (
        Patch(color=BLUE, label="counts: the longest of its phase"),
        Patch(color=PALE, label="beside it, hidden"),
        Patch(color=INK, label="measured, a mark each campaign"),
    )
    figure.legend(handles=handles, loc="outside upper center", ncols=3, frameon=False, fontsize=9)
    figure.supxlabel(source, x=0.01, ha="left", fontsize=7, color=GREY)
    return figure


def _waterfall(axes: Axes, shown: Stacked) -> None:
    ends = [each.end for each in shown.layers] + list(shown.measured)
    width = MICRO * max(ends)
    for row, each in enumerate(shown.layers):
        begin, long = MICRO * each.begin, MICRO * each.seconds
        axes.barh(row, long, left=begin, height=0.7, color=BLUE if each.counts else PALE)
        right = begin + long
        inside = right > 0.85 * width
        axes.annotate(
            f"{long:.3g}", (begin if inside else right, row), xytext=(-4 if inside else 4, 0), fontsize=8,
            textcoords="offset points", ha="right" if inside else "left", va="center",
            color=INK if each.counts else GREY,
        )  # fmt: skip
    at, mean = len(shown.layers), MICRO * sum(shown.measured) / len(shown.measured)
    axes.barh(at, mean, height=0.7, color=INK)
    axes.plot([MICRO * each for each in shown.measured], [at] * len(shown.measured), "|", color=RED, markersize=13)
    axes.annotate(
        f"{mean:.4g}", (4, at), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8, color="white"
    )
    predicted = MICRO * max(each.end for each in shown.layers if each.counts)
    axes.axvline(predicted, color=BLUE, linewidth=1, linestyle=(0, (4, 3)))
    axes.set_yticks(range(at + 1), [*(each.name for each in shown.layers), "measured"], fontsize=8.5)
    axes.set_ylim(at + 0.6, -0.6)
    axes.set_xlim(0, 1.04 * max(width, predicted))
    axes.set_xlabel("µs", fontsize=9)
    axes.tick_params(axis="x", labelsize=8.5)
    axes.grid(visible=False, axis="y")
    axes.set_title(f"{shown.title}\npredicted {predicted:.4g} µs, {predicted / mean:.2f} of measured", fontsize=10)


def residuals(of_gpu: Sequence[tuple[str, Sequence[Prediction]]], source: str) -> Figure:
    """Predicted over measured, each configuration a point, in ascending order within its class and kernel."""
    figure, panels = plt.subplots(len(of_gpu), 1, figsize=(11.5, 3.2 * len(of_gpu)), sharex=True, layout="constrained")
    columns = [(kind, kernel) for kind in CLASSES for kernel in KERNELS]
    for axes, (gpu, found) in zip(panels, of_gpu, strict=True):
        axes.axhspan(1 - BAND, 1 + BAND, color=PALE, alpha=0.45, linewidth=0)
        axes.axhline(1, color=INK, linewidth=1)
        for place, (kind, kernel) in enumerate(columns):
            here = sorted(
                (each for each in found if (each.posed.kind, each.pick[0]) == (kind, kernel)),
                key=lambda each: each.ratio,
            )
            if here:
                _column(axes, place, here, COLOURS[kernel])
        axes.set(yscale="log", ylim=(0.57, 1.5))
        axes.set_ylabel("predicted / measured", fontsize=9.5)
        axes.set_yticks((0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.5))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.1f}"))
        axes.yaxis.set_minor_formatter(FuncFormatter(lambda _value, _at: ""))
        axes.tick_params(labelsize=9)
        axes.grid(visible=False, axis="x")
        axes.set_title(gpu, fontsize=11)
    panels[-1].set_xticks(range(len(columns)), [f"{kind}\n{SHORT[kernel]}" for kind, kernel in columns], fontsize=9)
    panels[-1].set_xlim(-0.75, len(columns) - 0.4)
    handles = [
        *(
            Line2D([], [], marker="o", linestyle="", color=COLOURS[each], label=f"{SHORT[each]} forward")
            for each in KERNELS
        ),
        Line2D([], [], color=INK, linewidth=2.4, label="median"),
        Patch(color=PALE, alpha=0.45, label=f"within {BAND:.0%}"),
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=4, frameon=False, fontsize=9)
    figure.supxlabel(source, x=0.01, ha="left", fontsize=7, color=GREY)
    return figure


def _column(axes: Axes, place: int, here: Sequence[Prediction], colour: str) -> None:
    steps = max(1, len(here) - 1)
    axes.plot(
        [place - 0.36 + 0.72 * at / steps for at in range(len(here))],
        [each.ratio for each in here],
        "o", color=colour, markersize=2.6, alpha=0.75,
    )  # fmt: skip
    middle = here[len(here) // 2].ratio
    axes.plot([place - 0.36, place + 0.36], [middle, middle], color=INK, linewidth=2.2)
    least = worst(here)
    below = least.ratio < 1
    axes.annotate(
        f"{least.ratio:.2f}\n{short(least)}", (place - 0.36 if below else place + 0.36, least.ratio),
        xytext=(0, -4 if below else 4), textcoords="offset points", fontsize=7, color=INK,
        ha="center", va="top" if below else "bottom",
    )  # fmt: skip


def short(found: Prediction) -> str:
    """Length and head dim of a prediction's problem: so much as stands beside a point."""
    return f"d{found.posed.problem.head_dim}, {named(found.posed).split(', ')[1].replace(' packed of up to ', ' x ≤ ')}"
