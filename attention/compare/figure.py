"""The comparison as a picture: TFLOPS of ours and of every peer, cell by cell, from the last run on file."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from attention.compare.cells import TOKENS, Cell
from attention.compare.results import AMPERE, HOPPER, Result, last_run, mean
from attention.timed.timing import PEER
from microbench import paths
from microbench.report.figures import PALETTE, style
from microbench.results.profile import Profile, available

BLUE, RED, GREEN, VIOLET, OCHRE, GREY = PALETTE
KNOWN = {
    HOPPER: ("ours, Hopper", BLUE),
    AMPERE: ("ours, Ampere's instructions", "#8fb3d9"),
    "peer/flash_attn_4": ("FlashAttention-4", RED),
    "peer/torch_cudnn": ("cuDNN", GREEN),
    "peer/cudnn_frontend": ("cuDNN's front end", "#9fcf9f"),
    "peer/torch_flash": ("FlashAttention-2", VIOLET),
    "peer/torch_flex": ("FlexAttention", OCHRE),
}


@dataclass(frozen=True)
class Drawn:
    """A candidate in the legend: its name in data, its label with the version, its colour."""

    variant: str
    label: str
    colour: str


def candidates(results: Sequence[Result]) -> tuple[Drawn, ...]:
    """Everyone who was timed: ours first, then peers as KNOWN has them, then strangers."""
    rows = {row.variant: row for result in results for row in result.timings}
    order = [*(name for name in KNOWN if name in rows), *(name for name in rows if name not in KNOWN)]
    found = []
    for name in order:
        label, colour = KNOWN.get(name, (name.rpartition("/")[2], GREY))
        version = rows[name].packages.get(name.rpartition("/")[2], "") if name.startswith(PEER) else ""
        of = "torch " if name.startswith("peer/torch") else ""
        found.append(Drawn(name, f"{label} ({of}{version})" if version else label, colour))
    return tuple(found)


def _many(gpu: str) -> tuple[Result, ...]:
    """Cells of few queries are for the chooser: they wait for memory, and TFLOPS say nothing of them."""
    return tuple(each for each in last_run(gpu) if not each.cell.few)


def beside_peers(results: Sequence[Result], gpu: str) -> Figure:
    """The grid as small multiples, head dim by mask, cells off the grid below. A number is ours over the best peer."""
    drawn = candidates(results)
    on, off = ([each for each in results if each.cell.grid is grid] for grid in (True, False))
    dims = sorted({each.cell.problem.head_dim for each in on})
    masks = sorted({each.cell.problem.causal for each in on})
    heights = [1.0] * len(masks) + [1.15] * bool(off)
    figure = plt.figure(figsize=(12.5, 1.6 + 2.7 * len(heights)), layout="constrained")
    shape = figure.add_gridspec(max(1, len(heights)), max(1, len(dims)), height_ratios=heights or [1.0])
    top = 1.14 * max((each.tflops(row) for each in results for row in each.timings), default=1.0)
    for i, causal in enumerate(masks):
        for j, dim in enumerate(dims):
            axes = figure.add_subplot(shape[i, j])
            cells = [each for each in on if (each.cell.problem.causal, each.cell.problem.head_dim) == (causal, dim)]
            bars(axes, cells, drawn, [thousands(each.cell.problem.seq_q) for each in cells], top)
            axes.set_title(f"head dim {dim}, {'causal' if causal else 'full'}", fontsize=10)
            axes.set_ylabel("" if j else "TFLOPS", fontsize=9)
            if i == len(masks) - 1:
                said = f"sequence length, {thousands(TOKENS)} tokens in all"
                axes.set_xlabel(said if j == len(dims) // 2 else "", fontsize=9)
    if off:
        axes = figure.add_subplot(shape[-1, :])
        bars(axes, off, drawn, [off_grid_label(each.cell) for each in off], top)
        axes.set_title("off the grid", fontsize=10)
        axes.set_ylabel("TFLOPS", fontsize=9)
    said = "above our bar: how many times the best peer's speed; a gap: not timed there"
    figure.suptitle(f"Attention forward on {gpu}\n{said}", fontsize=12)
    handles = [Rectangle((0, 0), 1, 1, color=each.colour) for each in drawn]
    figure.legend(
        handles, [each.label for each in drawn], loc="outside lower center", ncols=3, frameon=False, fontsize=10
    )
    return figure


def bars(axes: Axes, results: Sequence[Result], drawn: Sequence[Drawn], labels: Sequence[str], top: float) -> None:
    """A group of bars a cell, with a gap for whoever does not take it; whiskers hold the middle half of the calls."""
    width = 0.84 / max(1, len(drawn))
    for at, each in enumerate(drawn):
        for group, result in enumerate(results):
            row = result.of(each.variant)
            if row is None:
                continue
            x, height = group + (at - (len(drawn) - 1) / 2) * width, result.tflops(row)
            axes.bar(x, height, 0.94 * width, color=each.colour, linewidth=0)
            scale = result.cell.flops / 1e12
            axes.plot([x, x], [scale / row.high, scale / row.low], color="#222222", linewidth=1)
            ratio = result.ratio(each.variant)
            if row.picked and ratio is not None:
                above = max(height, scale / row.low) + 0.015 * top
                axes.annotate(f"{ratio:.2f}", (x, above), ha="center", fontsize=8, color=each.colour)
    axes.set_xticks(range(len(results)), labels, fontsize=8)
    axes.tick_params(axis="y", labelsize=8)
    axes.grid(visible=False, axis="x")
    axes.set_xlim(-0.6, len(results) - 0.4)
    axes.set_ylim(0, top)


def thousands(number: int) -> str:
    """16384 as '16 384'."""
    return f"{number:,}".replace(",", " ")


def off_grid_label(cell: Cell) -> str:
    """Sequences, head dim and mask, and what else is odd about a cell."""
    problem = cell.problem
    length = f"{problem.batch} packed" if cell.lengths else f"{problem.batch} x {problem.seq_q}"
    odd = [f"window {problem.window[0]}"] if problem.window[0] >= 0 else []
    odd += [f"{problem.heads_q} heads on {problem.heads_kv}"] if problem.heads_q != problem.heads_kv else []
    odd += [problem.dtype] if problem.dtype != "bfloat16" else []
    return "\n".join((length, f"d{problem.head_dim}, {'causal' if problem.causal else 'full'}", *odd))


def summary(results: Sequence[Result], variant: str) -> str:
    """The geometric mean and the worst of a variant's ratios to the best peer, on the grid and off it."""
    said = []
    for grid, where in ((True, "on the grid"), (False, "off the grid")):
        ratios = [ratio for each in results if each.cell.grid is grid and (ratio := each.ratio(variant)) is not None]
        if ratios:
            said.append(f"{mean(ratios):.3f} {where} ({len(ratios)} cells, worst {min(ratios):.3f})")
    return "; ".join(said)


def write(gpu: str) -> Path | None:
    """Draw a GPU's last run into data/figures/attention-<gpu>.png; None where no run is on file."""
    results = _many(gpu)
    if not results:
        return None
    style()
    figure = beside_peers(results, Profile.load(gpu).name if gpu in available() else gpu)
    path = paths.writable_data() / "figures" / f"attention-{gpu}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)
    return path
