"""What timings on a CPU say of kernels: efficiency, the overhead of a call, and how far a predicted lead may be off."""

from dataclasses import replace

import pytest

from attention.calibration import Sample, calibrated
from attention.model import predict
from attention.problem import AttentionProblem
from attention.variant import Config, by_path
from tests.cpu.attention_profiles import host_profile

OURS, TORCH = by_path("host/forward/tiled_online_softmax"), by_path("host/forward/torch_sdpa")
TILE = Config((("block_q", 64), ("block_kv", 64)))
TINY = AttentionProblem(1, 1, 1, 32, 32, 16)
LENGTHS = (128, 256, 512, 1024, 2048, 4096)


def samples(problem, ours, theirs, overhead=0.0, spread=0.0, run=None):
    """Both kernels on one problem, so many times slower than the model promises, and `overhead` seconds."""
    for variant, config, slower in ((OURS, TILE, ours), (TORCH, Config(), theirs)):
        promised = predict(host_profile(), problem, variant, config).seconds
        took = promised * slower + overhead
        yield Sample(variant, config, problem, promised, took, took * (1 - spread), took * (1 + spread), run)


def grid(ours=lambda length: 2.0, theirs=lambda length: 3.0, **options):
    for length in LENGTHS:
        problem = AttentionProblem(1, 8, 8, length, length, 64)
        yield from samples(problem, ours(length), theirs(length), **options)


def many(found, variant=OURS, dtype="float32"):
    return found[f"{variant.path} {dtype} many queries"]


def test_a_tiny_timing_shows_the_overhead_of_a_call_and_no_other_timing_is_blamed_for_it():
    found = calibrated((*samples(TINY, 1.0, 1.0, overhead=80e-6), *grid(overhead=80e-6)))
    for variant, slower in ((OURS, 2.0), (TORCH, 3.0)):
        assert many(found, variant).overhead_seconds == pytest.approx(80e-6)
        assert many(found, variant).value == pytest.approx(1 / slower)
        assert many(found, variant).timings == len(LENGTHS)
    tiny = predict(host_profile(), TINY, OURS, TILE, many(found))
    assert tiny.seconds == pytest.approx(80e-6, rel=0.05)


def test_a_long_timing_is_no_overhead():
    assert many(calibrated(tuple(grid(ours=lambda _: 5.0)))).overhead_seconds == 0.0


def test_kernels_that_keep_their_efficiency_need_no_margin():
    assert many(calibrated(tuple(grid()))).margin == pytest.approx(1.0)


def test_the_margin_is_the_most_that_a_lead_was_overrated_by():
    found = calibrated(tuple(grid(ours=lambda length: 4.0 if length == 4096 else 2.0)))
    assert many(found).margin == pytest.approx(2.0)
    assert many(found, TORCH).margin is None


def test_wide_timings_mistrust_themselves():
    assert many(calibrated(tuple(grid(spread=0.2)))).margin == pytest.approx(1.2 / 0.8)


def test_without_torchs_timings_or_with_few_nothing_is_known_of_the_error():
    ours = [sample for sample in grid() if sample.variant == OURS]
    assert many(calibrated(ours)).margin is None
    assert many(calibrated(tuple(grid())[:6])).margin is None


def test_each_dtype_has_its_own_rate():
    half = (
        sample
        for length in LENGTHS
        for sample in samples(AttentionProblem(1, 8, 8, length, length, 64, dtype="bfloat16"), 8.0, 1.0)
    )
    found = calibrated((*grid(), *half))
    assert many(found, TORCH, "bfloat16").value == pytest.approx(1.0)
    assert many(found, TORCH).value == pytest.approx(1 / 3)


def test_a_later_run_makes_a_bad_one_good():
    noisy, quiet = grid(ours=lambda length: 10.0 * length, run="one"), grid(run="two")
    found = calibrated((*noisy, *quiet))
    assert many(found).value == pytest.approx(0.5) and many(found).timings == len(LENGTHS)


def test_a_hiccup_on_the_smallest_problem_is_no_overhead():
    shaken = [replace(sample, seconds=1.0, high=1.0) for sample in samples(TINY, 1.0, 1.0)]
    shortest = min(sample.seconds for sample in grid() if sample.variant == OURS)
    assert many(calibrated((*shaken, *grid()))).overhead_seconds == pytest.approx(shortest)
