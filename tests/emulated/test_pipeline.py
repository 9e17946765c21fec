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


def run(head_dim: int, polynomial: int = 0, blocks: int = 1) -> pipeline.Run:
    problem = AttentionProblem(1, 1, 1, blocks * 256, TILES * 128, head_dim, dtype="bfloat16").on("cuda")
    config = {"tile_keys": 128, "polynomial": polynomial, "dynamic": 0, "cta_group": blocks}
    return pipeline.run(problem, Config(tuple(config.items())))


def test_the_run_holds_every_product_and_every_arrival_that_its_barriers_count() -> None:
    made = run(64)
    steps = [step for warp in made.warps.values() for step in warp]
    kinds = Counter(step.kind for step in steps)
    # 64 / 16 instructions of Q K and 128 / 16 of P V for each of two query tiles.
    assert (kinds["scores"], kinds["values"]) == (2 * TILES * 4, 2 * TILES * 8)
    arrived = Counter((0, step.barrier, step.index) for step in steps if step.kind in ("arrive", "load", "commit"))
    assert all(arrived[bar] % count == 0 for bar, count in made.counts.items())
    assert arrived[0, "ready", 0] == TILES * made.counts[0, "ready", 0]


@pytest.fixture(scope="module")
def of_a_pair() -> pipeline.Run:
    return run(128, 8, blocks=2)


def test_a_pairs_arrivals_are_counted_in_the_block_where_they_come(of_a_pair: pipeline.Run) -> None:
    arrived = Counter(
        (block, step.barrier, step.index)
        for steps in of_a_pair.warps.values()
        for step in steps
        if step.kind in ("arrive", "load", "commit")
        for block in (0, 1)
        if step.blocks >> block & 1
    )
    assert all(arrived[bar] % count == 0 for bar, count in of_a_pair.counts.items())
    assert arrived[0, "ready", 0] == TILES * of_a_pair.counts[0, "ready", 0] and not arrived[1, "ready", 0]
    from_the_other = {
        step.barrier
        for warp, steps in of_a_pair.warps.items()
        for step in steps
        if step.kind == "arrive" and step.blocks == 1 and of_a_pair.block_of(warp) == 1
    }
    assert from_the_other == {"ready", "q_full", "kv_full"}
    assert {
        of_a_pair.block_of(warp) for warp, steps in of_a_pair.warps.items() for step in steps if step.kind == "scores"
    } == {0}


def test_products_of_a_pair_wait_for_both_softmaxes_and_take_both_tensor_cores(of_a_pair: pipeline.Run) -> None:
    spans = replay.replayed(of_a_pair, replay.Rates.of(B200, of_a_pair))
    first, second = (
        [(span.what, span.start, span.end) for span in spans if (span.lane, span.block) == ("tensor cores", block)]
        for block in (0, 1)
    )
    assert first == second and len(first) == 4 * TILES
    for tile in (0, 1):
        values = [span.start for span in spans if (span.what, span.query_tile, span.block) == ("values", tile, 0)]
        for block in (0, 1):
            lane = block, f"softmax {tile}", "works"
            ends = [span.end for span in spans if (span.block, span.lane, span.what) == lane]
            assert len(ends) == len(values) == TILES
            assert all(end <= start + 1e-6 for end, start in zip(ends, values, strict=True))


@pytest.mark.parametrize(("head_dim", "polynomial", "unit"), [(64, 0, 2048), (64, 8, 1536), (128, 0, 2068)])
def test_the_busier_unit_makes_the_period(head_dim: int, polynomial: int, unit: float) -> None:
    made = run(head_dim, polynomial)
    spans = replay.replayed(made, replay.Rates.of(B200, made))
    assert replay.period(spans) == pytest.approx(unit, abs=1)
    for lane in ("tensor cores", "exponentials", "copies"):
        mine = [span for span in spans if span.lane == lane]
        assert mine and all(before.end <= after.start for before, after in pairwise(mine))
