"""A call of torch's as one replay of a CUDA graph: what microbench.measure.alternate times without the host's part."""

from collections.abc import Callable
from typing import Any


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
        self.call = call  # the graph reads tensors that only the call may own, such as a block mask
        self._graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(self._graph):
                self._kept = call()
            self.replay: Callable[[], Any] = self._graph.replay
        except RuntimeError:
            torch.cuda.synchronize()
            self.captured, self.replay = False, call
