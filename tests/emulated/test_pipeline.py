"""The timeline of 23_blackwell_pipeline: the run's own order, units that do one thing at a time, and their period."""

from collections import Counter
from itertools import pairwise

import pytest

from attention.choose.machine import named_machine
from attention.problem import AttentionProblem
from attention.variant import Config
from notebooks.ladders import pipeline, replay

TILES = 8
B200 = named_machine("b200").published
assert B200 is not None


def run(head_dim: int, polynomial: int = 0) -> pipeline.Run:
    problem = AttentionProblem(1, 1, 1, 256, TILES * 128, head_dim, dtype="bfloat16").on("cuda")
    config = {"tile_keys": 128, "polynomial": polynomial, "dynamic": 0, "cta_group": 1}
    return pipeline.run(problem, Config(tuple(config.items())))


def test_the_run_holds_every_product_and_every_arrival_that_its_barriers_count() -> None:
    made = run(64)
    steps = [step for warp in made.warps.values() for step in warp]
    kinds = Counter(step.kind for step in steps)
    # 64 / 16 instructions of Q K and 128 / 16 of P V for each of two query tiles.
    assert (kinds["scores"], kinds["values"]) == (2 * TILES * 4, 2 * TILES * 8)
    arrived = Counter((step.barrier, step.index) for step in steps if step.kind in ("arrive", "load", "commit"))
    assert all(arrived[bar] % count == 0 for bar, count in made.counts.items())
    assert arrived["ready", 0] == TILES * made.counts["ready", 0]


@pytest.mark.parametrize(("head_dim", "polynomial", "unit"), [(64, 0, 2048), (64, 8, 1536), (128, 0, 2068)])
def test_the_busier_unit_makes_the_period(head_dim: int, polynomial: int, unit: float) -> None:
    made = run(head_dim, polynomial)
    spans = replay.replayed(made, replay.Rates.of(B200, made))
    assert replay.period(spans) == pytest.approx(unit, abs=1)
    for lane in ("tensor cores", "exponentials", "copies"):
        mine = [span for span in spans if span.lane == lane]
        assert mine and all(before.end <= after.start for before, after in pairwise(mine))
