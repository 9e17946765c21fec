"""GPU time of calls that alternate: each captured in a CUDA graph, one replay between two events, after an L2 flush.

Their order is drawn anew each round: what ran before a call heats the GPU, and moved times by up to 3 % where one call
always stood behind the same other.
"""

import random
from collections.abc import Callable, Mapping
from typing import Any

FLUSH_BYTES = 256 << 20  # five times the L2 of an H100
REPEATS = 15


class Graphed:
    """A call captured in a CUDA graph; `captured` is False where that was refused and the call runs eagerly."""

    def __init__(self, call: Callable[[], Any]) -> None:
        import torch

        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                call()
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        self.captured = True
        self._call = call  # the graph reads tensors that only the call may own, such as a block mask
        self._graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(self._graph):
                self._kept = call()
            self.replay: Callable[[], Any] = self._graph.replay
        except RuntimeError:
            torch.cuda.synchronize()
            self.captured, self.replay = False, call


def alternate(calls: Mapping[str, Graphed], repeats: int = REPEATS) -> dict[str, list[float]]:
    """Seconds of each call, `repeats` times, in turns; the same order in every process."""
    import torch

    flush = torch.empty(FLUSH_BYTES, dtype=torch.int8, device="cuda")
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    order, draw = list(calls.items()), random.Random(0)
    for _ in range(repeats):
        draw.shuffle(order)
        for name, call in order:
            flush.zero_()
            start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
            start.record()
            call.replay()
            stop.record()
            stop.synchronize()
            seconds[name].append(start.elapsed_time(stop) * 1e-3)
    return seconds
