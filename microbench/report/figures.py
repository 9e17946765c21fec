"""One figure per question, from the DataFrame that `load_runs` gives. Every function returns a matplotlib Figure.

Medians over campaigns are lines and points; the shaded band or bar is min to max over campaigns.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from microbench.health.tolerance import less_is_better
from microbench.results.profile import Profile
from microbench.results.profile_constant import ProfileConstant

PALETTE = ("#1f5fa8", "#c8502d", "#3a8f5c", "#8a5aa8", "#b08b1e", "#5c6670")
WIDE = (9.0, 4.6)
PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


def style() -> None:
    sns.set_theme(style="whitegrid", context="notebook", palette=PALETTE)
    plt.rcParams.update({"figure.dpi": 110, "savefig.bbox": "tight", "axes.titleweight": "bold", "grid.alpha": 0.4})


def si(value: float, unit: str = "") -> str:
    """3.05e12 and 'B/s' as '3.05 TB/s'; three significant digits."""
    for scale, prefix in PREFIXES:
        if abs(value) >= scale:
            return f"{value / scale:.3g} {prefix}{unit}".rstrip()
    return f"{value:.3g} {unit}".rstrip()


def binary(nbytes: float, _: object = None) -> str:
    """65536 as '64 KiB'."""
    for scale, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if nbytes >= scale:
            return f"{nbytes / scale:.4g} {name}"
    return f"{nbytes:.0f} B"


@dataclass(frozen=True)
class Curve:
    rows: pd.DataFrame
    label: str


def drawn(curves: Sequence[Curve], x: str) -> tuple[Figure, Axes]:
    figure, axes = plt.subplots(figsize=WIDE)
    for curve, colour in zip(curves, PALETTE, strict=False):
        grouped = curve.rows.groupby(x)["value"]
        middle, low, high = grouped.median(), grouped.min(), grouped.max()
        axes.plot(middle.index, middle, marker="o", markersize=3.5, linewidth=1.6, color=colour, label=curve.label)
        axes.fill_between(middle.index, low, high, color=colour, alpha=0.18, linewidth=0)
    return figure, axes


def pick(frame: pd.DataFrame, probe: str, metric: str, **where: object) -> pd.DataFrame:
    """The ok rows of one probe and metric; keyword names are axes (`mode='read'`), or `gpu` and `method`."""
    rows = frame[(frame["probe"] == probe) & (frame["metric"] == metric) & frame["value"].notna()]
    for name, value in where.items():
        column = name if name in ("gpu", "method") else f"point.{name}"
        rows = rows[rows[column] == value]
    return rows


def log_bytes(axes: Axes, label: str) -> None:
    """A logarithmic axis of bytes, ticked at powers of four."""
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(LogLocator(base=4, numticks=20))
    axes.xaxis.set_major_formatter(FuncFormatter(binary))
    axes.tick_params(axis="x", rotation=35)
    axes.set_xlabel(label)


def ladder(curves: Sequence[Curve], levels: Sequence[tuple[str, float]] = (), unit: str = "ns") -> Figure:
    """Latency against footprint on two log axes; `levels` are published values, drawn as labelled dashes."""
    figure, axes = drawn(curves, "point.footprint_bytes")
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(base=10, subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())  # two decades or fewer would be labelled twice
    for name, value in levels:
        axes.axhline(value, color="#5c6670", linewidth=0.8, linestyle=(0, (4, 3)))
        axes.annotate(
            name, (1.005, value), xycoords=("axes fraction", "data"), fontsize=7.5, va="center", color="#5c6670"
        )
    log_bytes(axes, "footprint of the chase")
    axes.set(ylabel=f"latency [{unit}]", title="One pointer chase, every level of memory")
    axes.legend(loc="lower right")
    return figure


def against_bytes_in_flight(curves: Sequence[Curve], bound: float | None, unit: str, title: str) -> Figure:
    """Bandwidth against bytes in flight per SM, with the physical bound."""
    figure, axes = drawn(curves, "point.bytes_in_flight")
    if bound is not None:
        axes.axhline(bound, color="#5c6670", linewidth=1, linestyle="--")
        axes.annotate(
            f"bound {si(bound, unit)}", (0.01, bound), xycoords=("axes fraction", "data"), va="bottom", fontsize=8
        )
    log_bytes(axes, "bytes in flight per SM")
    axes.set(ylim=(0, None), ylabel=unit, title=title)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: si(value)))
    axes.legend(loc="best", fontsize=9)
    return figure


def lines(curves: Sequence[Curve], x: str, xlabel: str, ylabel: str, title: str, log2: bool = True) -> Figure:
    figure, axes = drawn(curves, f"point.{x}")
    if log2:
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set(xlabel=xlabel, ylabel=ylabel, ylim=(0, None), title=title)
    axes.legend()
    return figure


def rates_with_a_bound(profile: Profile) -> list[ProfileConstant]:
    """What a machine could reach and how far it comes: no power or latency, whose bound only says what is absurd."""
    bounded = (each for each in profile.constants if each.bound_upper and math.isfinite(each.bound_upper))
    return [each for each in bounded if not less_is_better(each)]


def share_of_bound(profile: Profile) -> Figure:
    constants = rates_with_a_bound(profile)

    def share(constant: ProfileConstant) -> float:
        return constant.value / (constant.bound_upper or math.nan)

    constants.sort(key=share)
    figure, axes = plt.subplots(figsize=(9.0, 1.2 + 0.34 * len(constants)))
    for row, constant in enumerate(constants):
        bound = constant.bound_upper or math.nan
        axes.barh(row, share(constant), color=PALETTE[0], height=0.62)
        axes.plot([constant.low / bound, constant.high / bound], [row, row], color="#222222", linewidth=2)
        end = max(constant.value, constant.high) / bound
        axes.annotate(si(constant.value, constant.unit), (end + 0.01, row), va="center", fontsize=8)
    axes.set_yticks(range(len(constants)), [constant.name for constant in constants], fontsize=8)
    axes.axvline(1.0, color="#c8502d", linewidth=1)
    axes.set(xlim=(0, 1.22), title=f"{profile.name}: measured, as a share of the physical bound")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0%}"))
    return figure
