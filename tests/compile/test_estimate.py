"""The static estimate, made anew: as on file, of every kind of tile, and with the one rule that timings chose."""

import pytest

from attention.errors import AttentionError, ProblemError
from attention.estimate import held
from attention.estimate.phases import flops, phases_of
from attention.estimate.predicted import Estimate, estimate, estimate_all, rates_of
from attention.kernels.launch.source import sources_of
from attention.problem import AttentionProblem
from attention.timed import timings
from attention.variant import Config, by_path
from microbench import paths
from microbench.compile import require_all
from microbench.issue import sm

VOLTA, AMPERE = by_path("sm70/forward/quad_pair"), by_path(held.VARIANT)
V100 = rates_of("v100-pcie")
LADDER = "attention/h100-sxm-80gb-ladder.jsonl"


def problem(head_dim: int, length: int = 8192, **fields: bool) -> AttentionProblem:
    return AttentionProblem(1, 32, 32, length, length, head_dim, dtype="float16", device="cuda", **fields)


@pytest.mark.parametrize("number", range(0, len(held.read()), 8))
def test_what_is_on_file_is_what_is_estimated(number: int) -> None:
    case, row = list(held.cases())[number], held.read()[number]
    assert held.held(case) == row


@pytest.mark.slow
def test_all_that_is_on_file_is_what_is_estimated() -> None:
    assert tuple(map(held.held, held.cases())) == held.read()


@pytest.mark.parametrize(("head_dim", "tiles"), [(128, 7), (256, 3)])
def test_every_legal_tile_of_volta_has_an_estimate_below_the_tensor_cores_own_rate(head_dim: int, tiles: int) -> None:
    found = estimate_all(VOLTA, problem(head_dim, causal=True), V100)
    peak = V100.tensor_flops_per_clk * V100.sm_count * V100.clock_hz
    assert len(found) == tiles and found[0].flops_per_s == max(each.flops_per_s for each in found) < peak
    for each in found:
        assert 0 < max(term.share for term in each.terms) <= 1 + 1e-9
        assert each.bound == each.terms[0].name


def test_twice_the_keys_take_about_four_times_as_long() -> None:
    config = Config((("warps", 8), ("warp_rows", 16), ("tile_keys", 64), ("p_in_registers", 1)))
    once, twice = (estimate(VOLTA, problem(128, length), config, V100).seconds for length in (8192, 16384))
    assert 3.9 < twice / once < 4.1


def test_causal_rows_take_little_more_than_half_as_long() -> None:
    config = Config((("warps", 8), ("warp_rows", 16), ("tile_keys", 64), ("p_in_registers", 1)))
    full, causal = (estimate(VOLTA, problem(128, causal=each), config, V100).seconds for each in (False, True))
    assert 0.5 < causal / full < 0.55


def test_the_main_loop_of_the_ampere_kernel_passes_no_mask_and_no_rescaling() -> None:
    config = Config((("warps", 4), ("tile_keys", 64)))
    (cubin,) = require_all(sources_of(AMPERE, problem(128, causal=True), config, rates_of(held.GPU).arch))
    found = phases_of(cubin)
    heads = [each.head for each in found.tile]
    assert flops(found.tile) == 4 * 32 * 64 * 128 and heads.count("MUFU") == 32 * 64 // 32 and "FMUL" not in heads
    assert heads.count("BAR") == 1 and heads.count("LDGSTS") == 2 * 64 * 128 * 2 // 16 // 128
    assert flops(found.masked) == flops(found.tile) / 2  # a trip is a slice
    assert found.before[0].address == 0 and found.after[-1].head == "EXIT"


def test_a_loop_that_holds_no_whole_tile_is_refused() -> None:
    values = {"warps": 4, "tile_keys": 32, "warp_rows": 16, "slice_keys": 16, "blocks": 2, "q_in_registers": 0}
    config = Config((*values.items(), ("ahead", 1), ("fence", 0)))
    with pytest.raises(AttentionError, match=r"holds 0\.50 tiles"):
        estimate(AMPERE, problem(256), config, rates_of(held.GPU))


def test_features_and_kernels_that_stay_on_an_sm_are_refused() -> None:
    with pytest.raises(ProblemError, match="full and top-left causal"):
        estimate(VOLTA, problem(128, alibi=True), VOLTA.configs()[0], V100)
    hopper = by_path("sm90a/forward/warp_specialised")
    with pytest.raises(AttentionError, match="no block a tile of rows"):
        estimate(hopper, problem(128), hopper.configs()[0], rates_of(held.GPU))


@pytest.mark.slow
def test_the_clock_of_operands_brings_the_ladder_of_an_h100_within_the_goal(monkeypatch: pytest.MonkeyPatch) -> None:
    rungs = [
        row
        for row in timings.judged(paths.SHIPPED / LADDER)[0].values()
        if row.variant == AMPERE.path and row.problem.seq_q == 4096 and not row.causal
    ]
    rates, within = rates_of("h100-sxm-80gb"), {}
    for clocks in (sm.OPERAND_CLOCKS, 0.0):
        monkeypatch.setattr(sm, "OPERAND_CLOCKS", clocks)
        errors = []
        for row in rungs:
            try:
                found: Estimate = estimate(AMPERE, row.problem, Config(tuple(row.config.items())), rates)
            except AttentionError:  # two of head dim 256, whose slices ptxas leaves rolled up
                continue
            errors.append(abs(found.seconds / row.seconds - 1))
        assert len(errors) == len(rungs) - 2
        within[clocks] = sum(error <= 0.15 for error in errors)
    assert within == {1.0: 39, 0.0: 28}
