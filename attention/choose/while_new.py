"""Which kernel serves a shape while it is new, and outside of graphs: one that needs nothing built for each shape.

Torch's cuDNN builds a plan for every shape that it has not seen, 33 to 44 ms of the host (torch 2.11 on an H200,
data/attention/h200-sxm-141gb-new-lengths.json), where another kernel takes some tens of microseconds. A growing cache
has a new shape for every token, and calls it once a layer.

Outside of a graph a call is over when host and GPU are. Where torch's function keeps the host busy for longer than the
GPU, a kernel of ours goes on serving there, and the other one in graphs alone.
"""

from collections.abc import Callable
from typing import Any

from attention.choose.candidates import Candidate
from attention.choose.choose import Choice
from attention.choose.tuning import ranked
from attention.variant import by_path

Run = Callable[..., Any]
CALLS_OF_A_SHAPE = 64  # more than most models have layers
# Of the host by call, where the GPU takes less: by owner, on an H200's host (data/campaigns, the set of use; one query
# of cuDNN 20.6 to 22.0 us, of ours 17.7 to 18.6). Hosts differ by more than these do, but in both alike.
HOST_SECONDS = {"torch": 21e-6, "smscope": 18.5e-6}


def while_new(choice: Choice) -> Candidate:
    """The candidate whose first calls of a shape take the least together: often the pick itself."""
    pick, first_seconds = choice.pick, by_path(choice.pick.variant).first_seconds
    seconds = _seconds(choice, pick)
    if seconds is None or not first_seconds:
        return pick
    limit = seconds + first_seconds / CALLS_OF_A_SHAPE
    for each in ranked(choice.tuning, choice.candidates) if choice.tuning else choice.candidates:  # the fastest first
        variant = by_path(each.variant)
        allowed = variant.fused and not variant.first_seconds and not (choice.fallback and each.owner == "smscope")
        if allowed and (takes := _seconds(choice, each)) is not None and takes <= limit:
            return each
    return pick


def stays(choice: Choice, early: Candidate) -> bool:
    """Whether the candidate of the first calls is done before the pick outside of graphs, however often called."""
    owners = {early.owner, choice.pick.owner}
    if owners != {"torch", "smscope"}:
        return False
    by_early, by_pick = (_wall_seconds(choice, each) for each in (early, choice.pick))
    return by_early is not None and by_pick is not None and by_early < by_pick


def _wall_seconds(choice: Choice, candidate: Candidate) -> float | None:
    seconds = _seconds(choice, candidate)
    return None if seconds is None else max(seconds, HOST_SECONDS[candidate.owner])


def _seconds(choice: Choice, candidate: Candidate) -> float | None:
    """Of a call: as timed where timings decided, else as predicted."""
    if choice.tuning is not None:
        found = choice.tuning.of(candidate)
        return None if found is None else found.seconds
    return None if candidate.prediction is None else candidate.prediction.seconds


class Tally:
    """How often a shape was called. `graphs_alone`: from some number on, what serves then does so in graphs alone."""

    __slots__ = ("calls", "graphs_alone")

    def __init__(self, graphs_alone: bool = False) -> None:
        self.calls, self.graphs_alone = 0, graphs_alone

    def settled(self) -> bool:
        """Count a call; whether the shape has been called so often that a plan for it pays.

        The first such call is never in a graph's place: a graph that is captured cannot build the plan.
        """
        self.calls += 1
        if self.calls <= CALLS_OF_A_SHAPE:
            return False
        return not self.graphs_alone or self.calls == CALLS_OF_A_SHAPE + 1 or _is_capturing()


def _is_capturing() -> bool:
    import torch  # where a call asks, it is there

    return torch.cuda.is_current_stream_capturing()


class Settling:
    """Runs a shape by one kernel while it is new, and by another from then on, or from then on in graphs."""

    __slots__ = ("early", "late", "tally")

    def __init__(self, early: Run, late: Run, graphs_alone: bool = False) -> None:
        self.early, self.late, self.tally = early, late, Tally(graphs_alone)

    def __call__(self, *given: Any) -> Any:
        """As either is called."""
        return (self.late if self.tally.settled() else self.early)(*given)
