"""How long blocks of unequal keys share DRAM: who has most is alone at the end.

All that are under way share it evenly, until they ask for less than it gives; from then on each goes at its own pace.
So a call of many lengths took 12 % more with two blocks for a tile's keys than with 16 (H100, head dim 256).

Where all blocks run at once, those longer than x are left when each has had x slices. Where others wait for their
places, the last of them begins while the others are anywhere in their own: of a renewal process, places * sum(L - x) /
sum(L) of them have more than x left.
"""

from collections.abc import Sequence

STEPS = 16  # of the longest's slices, in which its time is summed up


def seconds_of_all(blocks: Sequence[tuple[float, float]], places: int, own: float, shared: float) -> float:
    """Of so many blocks with so many slices each: one takes `own` seconds by itself, and `shared` of DRAM."""
    count, total = (sum(many * slices**power for many, slices in blocks) for power in (0, 1))
    step, idle = max(slices for _, slices in blocks) / STEPS, 0.0
    for at in range(STEPS):
        had = (at + 0.5) * step
        if count <= places:
            left = sum(many for many, slices in blocks if slices > had)
        else:
            left = places / total * sum(many * max(0.0, slices - had) for many, slices in blocks)
        idle += step * max(0.0, own - left * shared)
    return total * shared + idle
