"""Another figure of 23_blackwell_pipeline: a pair of blocks on two SMs, who waits for whom, and what each SM reads."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.pyplot import subplots

from attention.kernels.sm100a.forward.tensor_memory.arguments import Shape
from notebooks.ladders.figure_pipeline import colour, ink, label_of
from notebooks.ladders.replay import Span
from notebooks.ladders.sourced import sourced

UNITS = ("tensor cores", "exponentials", "softmax 0", "softmax 1")
LANES = tuple((block, lane) for block, last in ((0, "issuer"), (1, "relay")) for lane in (*UNITS, last))
OWN, OTHER = "#333333", "#c2185b"
A_BYTES, B_BYTES = "#8c6bb1", "#41ab5d"


@dataclass(frozen=True)
class Reads:
    """What one SM reads for one thing: bytes that one block needs alone, and those that a pair shares."""

    what: str
    own: tuple[int, int]  # of a single block, of a pair's block
    shared: tuple[int, int]


def reads_of(single: Shape, both: Shape) -> tuple[Reads, ...]:
    """For a tile of keys: by the products of both query tiles from shared memory, and from the L2."""
    keys = [of.held_keys * of.head_dim * 2 for of in (single, both)]
    values = [of.tile_keys * of.held_values * 2 for of in (single, both)]
    rows, times = [of.block_rows * of.head_dim * 2 for of in (single, both)], single.query_tiles
    return (
        Reads(f"Q K of {single.block_rows} rows", (rows[0], rows[1]), (times * keys[0], times * keys[1])),
        Reads(f"P V of {single.block_rows} rows", (0, 0), (times * values[0], times * values[1])),
        Reads("K and V from the L2", (0, 0), (keys[0] + values[0], keys[1] + values[1])),
    )


def pair(spans: Sequence[Span], start: float, end: float, reads: Sequence[Reads], sources: Sequence[str]) -> Figure:
    """Both SMs' lanes between two cycles, an arrow from each softmax to the product that waits for it; then `reads`."""
    figure, (above, below) = subplots(2, 1, figsize=(11, 8.2), height_ratios=(3, 1.15), layout="constrained")
    _lanes(above, spans, start, end)
    for sooner, product in _waits(spans, start, end):
        at, to = (LANES.index((span.block, span.lane)) for span in (sooner, product))
        above.annotate(
            "",
            (product.start - start, to + 0.39),
            (sooner.end - start, at - 0.39),
            arrowprops={"arrowstyle": "->", "color": OTHER if sooner.block else OWN, "linewidth": 1.2},
        )
    above.set_title("P V of a query tile begins when P of both blocks is there; commits answer to both")
    _bars(below, reads)
    return sourced(figure, ("order: our kernel's own text on the emulator", *sources))


def _lanes(axes: Axes, spans: Sequence[Span], start: float, end: float) -> None:
    for span in spans:
        low, high, lane = max(span.start, start), min(span.end, end), (span.block, span.lane)
        if high <= low or lane not in LANES:
            continue
        row, label = LANES.index(lane), label_of(span)
        axes.barh(row, high - low, left=low - start, height=0.78, color=colour(span), edgecolor="white", linewidth=0.6)
        if high - low > 0.011 * (end - start) * len(label):
            axes.text((low + high) / 2 - start, row, label, ha="center", va="center", fontsize=8, color=ink(span))
    axes.set_yticks(range(len(LANES)), [f"SM {block}: {lane}" for block, lane in LANES])
    axes.axhline(len(LANES) / 2 - 0.5, color="#888888", linewidth=0.8)
    axes.invert_yaxis()
    axes.set_xlim(0, end - start)
    axes.set_xlabel("cycles of an SM, by published rates")
    axes.grid(visible=False)


def _waits(spans: Sequence[Span], start: float, end: float) -> Iterator[tuple[Span, Span]]:
    """(the last softmax of a query tile in a block, the p V that waits for it), of products of the first SM."""
    for product in spans:
        if (product.what, product.block) != ("values", 0) or not start < product.start < end:
            continue
        for block in (0, 1):
            mine = [
                span
                for span in spans
                if (span.block, span.lane, span.what) == (block, f"softmax {product.query_tile}", "works")
                and start < span.end <= product.start + 1e-6
            ]
            if mine:
                yield max(mine, key=lambda span: span.end), product


def _bars(axes: Axes, reads: Sequence[Reads]) -> None:
    labels = []
    for row, (each, of) in enumerate((each, of) for each in reads for of in (0, 1)):
        axes.barh(row, each.own[of], height=0.74, color=A_BYTES)
        axes.barh(row, each.shared[of], left=each.own[of], height=0.74, color=B_BYTES)
        total = each.own[of] + each.shared[of]
        axes.text(total, row, f" {total / 1024:g} KiB", va="center", fontsize=8)
        labels.append(f"{each.what}, {'a pair' if of else 'one block'}")
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.12 * max(max(each.own) + max(each.shared) for each in reads))
    axes.set_xticks([])
    axes.set_title("What one SM reads for 128 keys: its own rows violet, K and V green")
    axes.grid(visible=False)
