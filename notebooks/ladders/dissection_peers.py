"""What is predicted of our Blackwell kernel at 16k beside each published figure, and what a miss would need."""

from collections.abc import Iterator

from IPython.display import Markdown

from attention.choose.machine import named_machine
from attention.choose.published.ranking import ranking
from attention.choose.published.speed import Peer
from attention.problem import AttentionProblem
from microbench.console.si import digits, written
from notebooks.ladders.table import table

KINDS = ("b200", "gb200", "b300")
DIMS = ((64, 64), (128, 128), (192, 128), (256, 256))
KEYS = 16384


def beside(batch: int = 2, heads: int = 16) -> Markdown:
    """A line for each kind, head dim, mask and peer that has a figure of such a shape within an octave."""
    return table(
        "GPU | head dim | mask | predicted | published | of our highest, at its shape | by the clock alone | "
        "open cycles alone | known",
        (
            line
            for kind in KINDS
            for dims in DIMS
            for causal in (False, True)
            for line in _lines(kind, dims, causal, batch, heads)
        ),
    )


def _lines(kind: str, dims: tuple[int, int], causal: bool, batch: int, heads: int) -> Iterator[tuple[object, ...]]:
    problem = AttentionProblem(batch, heads, heads, KEYS, KEYS, *dims, causal=causal, dtype="bfloat16").on("cuda")
    profile = named_machine(kind).published
    assert profile is not None
    found = ranking(profile, problem, ()).speed
    if found is None:
        return
    ends = f"{written(found.low, 'FLOP/s')} to {written(found.high, 'FLOP/s')}" if found.low and found.high else ""
    said = ends or f"unpredicted: {found.unpredicted}"
    where = kind, "x".join(map(str, dict.fromkeys(dims))), "causal" if causal else "full"
    for peer in found.peers:
        if "tells no shape" not in peer.figure:
            yield *where, said, _figure(peer), *_miss(peer)


def _figure(peer: Peer) -> str:
    shape, _, _ = peer.figure.removeprefix("The figure: ").partition(f" ({peer.source}")
    return f"{shape} ({peer.source})"


def _miss(peer: Peer) -> tuple[str, str, str, str]:
    share, found = digits(peer.share) if peer.share else "", peer.miss
    if found is None:
        return share, "", "", ""
    hidden = found.ours.hidden
    opened = f"{found.open_cycles:.0f}: {digits(found.open_cycles / hidden.cycles)} of {hidden.term}"
    known = f"{found.power_mhz:.0f} MHz under attention ({found.source})" if found.power_mhz else "no clock"
    return share, f"{found.needed_mhz:.0f} of {found.ours.clock_mhz:.0f} MHz", opened, known
