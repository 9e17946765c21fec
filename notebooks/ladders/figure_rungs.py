"""Figures of the ladder, and of what stands between a cell's speed and the machine's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from attention.compare.results import Climb
from microbench.report.figures import PALETTE


def rungs(climbs: Sequence[Climb], letters: Mapping[tuple[str, ...], str]) -> Figure:
    """TFLOPS up the ladder: a panel for each head dim and mask, a line for each length. `letters` name the rungs."""
    dims = sorted({each.cell.problem.head_dim for each in climbs})
    masks = sorted({each.cell.problem.causal for each in climbs})
    figure, grid = plt.subplots(
        max(1, len(masks)), max(1, len(dims)), figsize=(11.5, 6.2), sharey=True, squeeze=False, layout="constrained"
    )
    top = 1.06 * max((each.tflops(step) for each in climbs for step in each.rungs), default=1.0)
    for row, causal in zip(grid, masks, strict=False):
        for axes, dim in zip(row, dims, strict=False):
            here = [each for each in climbs if (each.cell.problem.head_dim, each.cell.problem.causal) == (dim, causal)]
            for each, colour in zip(here, PALETTE, strict=False):
                places = [list(letters).index(step.ideas) for step in each.rungs]
                speeds = [each.tflops(step) for step in each.rungs]
                axes.plot(places, speeds, marker="o", markersize=4, color=colour, label=f"{each.cell.problem.seq_q}")
            axes.set_xticks(range(len(letters)), list(letters.values()), fontsize=9)
            axes.tick_params(axis="y", labelsize=8)
            axes.set_title(f"head dim {dim}, {'causal' if causal else 'full'}", fontsize=10)
            axes.set_ylim(0, top)
        row[0].set_ylabel("TFLOPS", fontsize=9)
    figure.supxlabel("rung; a line ends where its kernel takes no further idea", fontsize=9)
    if climbs:
        grid[0][0].legend(title="sequence", fontsize=8, title_fontsize=8, loc="lower right")
    figure.suptitle("Up the ladder", fontsize=13)
    return figure


@dataclass(frozen=True)
class Ceilings:
    """A cell, its measured TFLOPS, and what each unit alone would allow, by the unit's name."""

    label: str
    measured: float
    limits: Mapping[str, float]


def ceilings(cells: Sequence[Ceilings], title: str, most: float) -> Figure:
    """Bars are what was measured; marks are what each unit alone would allow, up to `most` TFLOPS."""
    figure, axes = plt.subplots(figsize=(10.0, 1.6 + 0.3 * len(cells)), layout="constrained")
    names = list(dict.fromkeys(name for each in cells for name in each.limits))
    places = range(len(cells))
    axes.barh(places, [each.measured for each in cells], color="#8fb3d9", height=0.7, label="measured")
    for name, colour in zip(names, (*PALETTE[1:], PALETTE[0]), strict=False):
        shown = [at for at, each in enumerate(cells) if each.limits.get(name, most + 1) <= most]
        if shown:
            x = [cells[at].limits[name] for at in shown]
            axes.scatter(x, shown, marker="|", s=170, linewidth=2.4, color=colour, label=name, zorder=3)
    axes.set_yticks(places, [each.label for each in cells], fontsize=8)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set(xlim=(0, most), xlabel="TFLOPS")
    axes.set_title(title, fontsize=11)
    figure.legend(loc="outside lower center", ncols=3, fontsize=9, frameon=False, markerscale=0.6)
    return figure
