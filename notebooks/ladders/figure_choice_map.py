"""Figures of the map of choices: a tile in each place, and what changes where a constant does."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from notebooks.ladders.choice_map import HEAD_DIMS, LENGTHS, Change, Place
from notebooks.ladders.sourced import GREY

INK, EDGE, FRAME = "#222222", "#f1f1f1", "#c8502d"
KEYS = (64, 80, 96, 112, 128, 160, 176)  # shades go from few to many
TWO, THREE = ("#e4eefa", "#4f8fd0"), ("#fbe7cf", "#e08a2e")  # ends of the shades by warpgroups
OTHER = "#b9d9c3"
GAIN = LinearSegmentedColormap.from_list("gain", ("#ffffff", "#d9e8c6", "#5f9e4e"))
Named = tuple[str, Sequence[Place]]  # a panel's title and its places


def tiles(panels: Sequence[Named], source: str) -> Figure:
    """A panel each: keys of the tile in every place, coloured by warpgroups, dotted where torch's kernel is chosen."""
    figure, every = _panels(panels)
    for axes, (_, places) in zip(every, panels, strict=True):
        for place in places:
            column, row = _at(place)
            _cell(axes, column, row, _colour(place), _said(place))
            if place.is_torchs:
                axes.plot(column + 0.39, row - 0.32, "o", color=INK, markersize=3)
    handles = [
        Patch(color=TWO[1], label="2 warpgroups: 128 rows"),
        Patch(color=THREE[1], label="3 warpgroups: 192 rows"),
        *([Patch(color=OTHER, label="our sm80 forward")] if any(_ampere(panels)) else []),
        Patch(color="none", label="number: keys of a tile (more are darker); R: Q in registers"),
        Line2D([], [], marker="o", linestyle="", color=INK, markersize=3.5, label="torch's kernel before ours"),
    ]
    return _finished(figure, handles, source)


def differences(panels: Sequence[tuple[str, Sequence[Change]]], source: str) -> Figure:
    """Predicted time that goes, as a colour; where the tile changes the new one is written and framed."""
    figure, every = _panels(panels)
    most = max(change.saved for _, changes in panels for change in changes)
    for axes, (_, changes) in zip(every, panels, strict=True):
        for change in changes:
            column, row = _at(change.before)
            text = _said(change.after, whole=True) if change.changed else ""
            _cell(axes, column, row, GAIN(change.saved / most), text)
            if change.changed:
                axes.add_patch(
                    Rectangle((column - 0.47, row - 0.45), 0.94, 0.9, fill=False, color=FRAME, linewidth=1.4)
                )
    handles = [
        Patch(color=GAIN(0.0), ec=GREY, label="no time saved"),
        Patch(color=GAIN(0.5), label=f"{most / 2:.0%}"),
        Patch(color=GAIN(1.0), label=f"{most:.0%} of the predicted time"),
        Patch(fill=False, ec=FRAME, label="another tile: warpgroups x keys, R: Q in registers"),
    ]
    return _finished(figure, handles, source)


def _ampere(panels: Sequence[Named]) -> Sequence[bool]:
    return [not place.is_hopper for _, places in panels for place in places]


def _panels(titled: Sequence[tuple[str, object]]) -> tuple[Figure, Sequence[Axes]]:
    figure, every = plt.subplots(1, len(titled), figsize=(11.5, 5.6), sharey=True, layout="constrained")
    for axes, (title, _) in zip(every, titled, strict=True):
        axes.set(xlim=(-0.5, len(LENGTHS) - 0.5), ylim=(-0.5, len(HEAD_DIMS) - 0.5))
        axes.set_xticks(range(len(LENGTHS)), [_short(length) for length in LENGTHS], fontsize=9)
        axes.set_xlabel("length of a sequence [tokens]", fontsize=9.5)
        axes.grid(visible=False)
        axes.set_title(title, fontsize=11)
    every[0].set_yticks(range(len(HEAD_DIMS)), [str(dim) for dim in HEAD_DIMS], fontsize=9)
    every[0].set_ylabel("head dim", fontsize=9.5)
    return figure, every


def _finished(figure: Figure, handles: Sequence[object], source: str) -> Figure:
    figure.legend(
        handles=handles, loc="outside upper center", ncols=len(handles), frameon=False, fontsize=8.5, handlelength=1.2
    )
    figure.supxlabel(source, x=0.01, ha="left", fontsize=7, color=GREY)
    return figure


def _at(place: Place) -> tuple[int, int]:
    length, head_dim = place.at
    return LENGTHS.index(length), HEAD_DIMS.index(head_dim)


def _cell(axes: Axes, column: int, row: int, colour: object, text: str) -> None:
    axes.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor=colour, edgecolor=EDGE, linewidth=0.8))
    axes.annotate(text, (column, row), ha="center", va="center", fontsize=8, color=INK)


def _colour(place: Place) -> object:
    if not place.is_hopper:
        return OTHER
    warpgroups, keys, _ = place.tile
    few, many = map(to_rgb, THREE if warpgroups == 3 else TWO)
    share = (min(keys, KEYS[-1]) - KEYS[0]) / (KEYS[-1] - KEYS[0])
    return tuple(one + share * (other - one) for one, other in zip(few, many, strict=True))


def _said(place: Place, *, whole: bool = False) -> str:
    if not place.is_hopper:
        return "sm80"
    warpgroups, keys, held = place.tile
    return f"{f'{warpgroups}x' if whole else ''}{keys}{'R' if held else ''}"


def _short(length: int) -> str:
    return f"{length // 1024}k" if length >= 1024 else str(length)
