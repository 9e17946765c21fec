"""The figure of 23_blackwell_pipeline: units and warps over the cycles of a few tiles of keys."""

from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.pyplot import subplots

from notebooks.ladders.replay import Span
from notebooks.ladders.sourced import sourced

LANES = ("tensor cores", "exponentials", "softmax 0", "softmax 1", "correction", "issuer", "copies", "loader")
COLOURS = {"scores": ("#1f77b4", "#7fb3d9"), "values": ("#d95f02", "#f3ab73"), "works": ("#2ca02c", "#98d594")}
WAITING, COPYING = "#e4e4e4", "#8c6bb1"
LABELS = {"scores": "Q K", "values": "P V", "works": "exp2"}


def timeline(spans: Sequence[Span], start: float, end: float, title: str, sources: Sequence[str]) -> Figure:
    """Spans between two cycles, a row for each lane; labels where they fit. `sources` gave the units' rates."""
    figure, axes = subplots(figsize=(11, 4.6), layout="constrained")
    for span in spans:
        low, high = max(span.start, start), min(span.end, end)
        if high <= low or span.lane not in LANES:
            continue
        row = LANES.index(span.lane)
        axes.barh(row, high - low, left=low - start, height=0.78, color=colour(span), edgecolor="white", linewidth=0.6)
        label = label_of(span)
        if high - low > 0.011 * (end - start) * len(label):
            axes.text((low + high) / 2 - start, row, label, ha="center", va="center", fontsize=8, color=ink(span))
    axes.set_yticks(range(len(LANES)), LANES)
    axes.invert_yaxis()
    axes.set_xlim(0, end - start)
    axes.set_xlabel("cycles of an SM, by published rates")
    axes.set_title(title)
    axes.grid(visible=False)
    return sourced(figure, ("order: our kernel's own text on the emulator", *sources))


def colour(span: Span) -> str:
    if span.what.startswith("waits"):
        return WAITING
    if span.lane == "copies":
        return COPYING
    if span.lane == "exponentials":
        return COLOURS["works"][span.query_tile % 2]
    return COLOURS[span.what][span.query_tile % 2]


def ink(span: Span) -> str:
    if span.what.startswith("waits"):
        return "#555555"
    return "white" if span.query_tile % 2 == 0 or span.lane == "copies" else "black"


def label_of(span: Span) -> str:
    if span.what.startswith("waits"):
        return span.what.removeprefix("waits for ")
    if span.lane == "copies":
        return span.what.removesuffix("_full")
    return f"{LABELS['works' if span.lane == 'exponentials' else span.what]} {span.query_tile}"
