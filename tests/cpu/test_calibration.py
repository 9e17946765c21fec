"""What timings on a CPU say of kernels: efficiency, the overhead of a call, and where ours leads."""

from dataclasses import replace

import pytest

from attention.choose.calibration import Sample, calibrated, duels, lead_near
from attention.choose.model import predict
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
        yield from samples(AttentionProblem(1, 8, 8, length, length, 64), ours(length), theirs(length), **options)


def many(found, variant=OURS, dtype="float32"):
    return found.of_class[f"{variant.path} {dtype} many queries"]


def test_a_tiny_timing_shows_the_overhead_of_a_call_and_no_other_timing_is_blamed_for_it():
    found = calibrated((*samples(TINY, 1.0, 1.0, overhead=80e-6), *grid(overhead=80e-6)))
    for variant, slower in ((OURS, 2.0), (TORCH, 3.0)):
        assert many(found, variant).overhead_seconds == pytest.approx(80e-6)
        assert many(found, variant).value == pytest.approx(1 / slower)
        assert many(found, variant).timings == len(LENGTHS)
    assert predict(host_profile(), TINY, OURS, TILE, many(found)).seconds == pytest.approx(80e-6, rel=0.05)


def test_a_long_timing_is_no_overhead():
    assert many(calibrated(tuple(grid(ours=lambda _: 5.0)))).overhead_seconds == 0.0


def lead(samples_, problem):
    return lead_near(OURS, problem, duels(samples_))


def square(length, **changes):
    return AttentionProblem(1, 8, 8, length, length, 64, **changes)


def test_a_lead_is_the_least_of_the_nearest_duels():
    def slower_at(where):
        return tuple(grid(ours=lambda length: 40.0 if length == where else 2.0))

    for where in LENGTHS:
        leads = {length: lead(slower_at(where), square(length)) for length in LENGTHS}
        even = {length: lead(tuple(grid()), square(length)) for length in LENGTHS}
        assert leads[where] < 1 < even[where] and any(leads[length] == even[length] for length in LENGTHS)


def test_wide_timings_leave_a_lead_open_at_its_least():
    ours, torchs = samples(square(512), 1.0, 1.0, spread=0.2)
    (duel,) = duels((ours, torchs))
    assert duel.lead == pytest.approx(torchs.seconds / ours.seconds * 0.8 / 1.2)


def test_the_best_tile_that_was_timed_fights():
    ours, torchs = samples(square(512), 1.0, 1.0)
    slow = replace(ours, config=Config((("block_q", 32), ("block_kv", 64))), seconds=1.0, low=1.0, high=1.0)
    assert duels((ours, slow, torchs)) == duels((slow, ours, torchs)) == duels((ours, torchs))


def test_too_few_duels_say_nothing_and_nothing_of_other_dtypes_triangles_or_few_queries():
    timed = tuple(grid())
    assert lead(timed, square(700)) > 1
    for other in (square(700, dtype="bfloat16"), square(700, causal=True), AttentionProblem(1, 8, 8, 1, 700, 64)):
        assert lead(timed, other) is None
    assert lead(timed[:4], square(700)) is None
    assert lead([sample for sample in timed if sample.variant == OURS], square(700)) is None


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
