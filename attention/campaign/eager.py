"""What calls take by the wall clock, the host's part with the GPU's: as a program runs that captures no graph.

Of each call many in a row, from a GPU that has nothing to do until it has done all of them: what takes longer of the
two, host or GPU, shows. Calls take turns in an order that is drawn anew each round. What names a backend to torch is on
around a row of calls, and no part of them.
"""

import random
import time
from collections.abc import Mapping

from attention.compare.written import Written

MOST_S = 50e-6  # of the GPU, above which the host has time enough
CALLS, ROUNDS = 100, 11


def timed(calls: Mapping[str, Written], seed: str) -> dict[str, tuple[float, ...]]:
    """Seconds of a call, a number each round; of a call that fails none."""
    import torch

    found: dict[str, list[float]] = {name: [] for name in calls}
    order, draw = list(calls), random.Random(f"{seed} eager")
    with torch.no_grad():
        for turn in range(-1, ROUNDS):  # the first warms up
            draw.shuffle(order)
            for name in tuple(order):
                try:
                    seconds = _row(calls[name])
                except Exception:  # the others go on; who asks sees whether the GPU does
                    order.remove(name)
                    continue
                if turn >= 0:
                    found[name].append(seconds)
    return {name: tuple(found[name]) for name in calls if name in order}


def _row(call: Written) -> float:
    """Seconds of a call in a row of CALLS."""
    import torch

    plain = call.plain
    with call.around():
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(CALLS):
            plain()
        torch.cuda.synchronize()
        return (time.perf_counter() - began) / CALLS
