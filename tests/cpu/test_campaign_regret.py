"""What a choice costs, by lines whose best is known; and every way to choose, on them."""

import math
from collections.abc import Sequence

import pytest

from attention.campaign import choosers
from attention.campaign.posed import Posed, parse
from attention.campaign.regret import Judged, Pick, Regrets, choices, errors, floor, interval, judged, regrets
from attention.campaign.table import FA4, MEASURED, ONE_TILE, ONES, Line, Other, table
from attention.choose import constants
from attention.choose.candidates import legal
from attention.variant import by_path
from microbench.errors import DataError
from microbench.machine.arch import by_name
from microbench.results.profile import Profile
from tests.cpu.campaign_rows import AMPERE, HOPPER, ONE, OTHER, OURS, line, pick, tile

H200 = Profile.load("h200-sxm-141gb")
# 96 keys win the first campaign, 112 the second and both together.
FIRST = line(ONE, tile(96, 1.0, 1.0, 9.0), tile(112, 1.1, 1.1), tile(128, 2.0), tile(64, 1.5, variant=AMPERE))
SECOND = line(ONE, tile(96, 1.2), tile(112, 1.0), tile(128, 2.0), tile(64, 1.1, variant=AMPERE), campaign=2)
(ALL,) = judged([FIRST], [SECOND])


def always(keys: int) -> object:
    return lambda posed, picks: pick(keys)


def test_the_best_has_the_lowest_mean_of_both_campaigns():
    assert ALL.seconds[pick(96)] == (1.0, 1.2) and ALL.mean(pick(96)) == pytest.approx(1.1)
    assert ALL.best == pick(112) and ALL.regret(pick(112)) == 0
    assert ALL.regret(pick(128)) == pytest.approx(2.0 / 1.05 - 1)


def test_the_floor_is_the_first_campaigns_winner_in_the_second():
    assert ALL.floor == pytest.approx(0.2)
    assert floor([ALL, Judged(OTHER, {pick(96): (1.0, 1.0), pick(112): (2.0, 2.0)})]).values == pytest.approx((0.2, 0))


def test_only_what_every_campaign_timed_is_judged():
    failed = tile(96).model_copy(update={"failure": "wrong: 3 above 1"})
    (found,) = judged(
        [FIRST], [line(ONE, failed, tile(112, 1.0), tile(176, 0.1), campaign=2), line(OTHER, tile(96, 1.0))]
    )
    assert found.picks == (pick(112),) and choices([found]) == ()
    with pytest.raises(DataError, match="was not timed on"):
        found.regret(pick(96))


def test_the_last_line_of_a_problem_counts():
    (found,) = judged([FIRST, line(ONE, tile(96, 3.0), tile(112, 3.3))], [SECOND])
    assert found.seconds == {pick(96): (3.0, 1.2), pick(112): (3.3, 1.0)}


def test_a_cache_that_was_read_full_and_one_that_was_written_full_are_not_compared():
    read = SECOND.model_copy(update={"l2_read": True})
    assert judged([FIRST], [read]) == ()
    assert FIRST.posed == read.posed and FIRST.posed.l2_written and not read.posed.l2_written


def test_a_kernel_is_judged_among_its_own():
    (ours,) = choices([ALL], HOPPER)
    assert {path for path, _ in ours.picks} == {HOPPER} and choices([ALL], AMPERE) == ()


def test_a_chooser_has_a_mean_and_a_worst_regret():
    other = Judged(OTHER, {pick(96): (1.0, 1.0), pick(112): (1.5, 1.5)})
    found = regrets([ALL, other], always(112))  # type: ignore[arg-type]
    assert found.values == pytest.approx((0.0, 0.5)) and found.mean == pytest.approx(0.25) and found.worst == 0.5
    assert regrets([ALL, other], choosers.best_in([ALL, other])).values == (0.0, 0.0)


def test_the_interval_holds_a_difference_that_every_problem_shares_and_not_0():
    better, worse = Regrets("a", (0.01,) * 20), Regrets("b", (0.03,) * 20)
    assert interval(better, worse) == pytest.approx((-0.02, -0.02))


def test_the_interval_holds_0_where_problems_disagree_and_is_the_same_each_time():
    one, other = Regrets("a", (0.0, 0.04) * 15), Regrets("b", (0.04, 0.0) * 15)
    low, high = interval(one, other)
    assert low < 0 < high and interval(one, other) == (low, high)
    assert interval(other, one) == pytest.approx((-high, -low))
    # Of 30 problems that differ by 4 % either way the mean's standard error is 0.04 / sqrt(30).
    assert high == pytest.approx(1.96 * 0.04 / math.sqrt(30), rel=0.1)


def test_errors_are_of_every_configuration_and_of_each_class():
    other = Judged(OTHER, {pick(96): (1.0, 1.0)})
    seconds = {str(ONE): {pick(96): 1.21, pick(112): 1.05, pick(128): 1.0}, str(OTHER): {pick(96): 0.9}}
    found = errors([ALL, other], lambda posed, each: seconds[str(posed)].get(each))
    assert found.count == 4 and found.of_class == pytest.approx({"prefill": 0.2, "short": 0.1})
    assert found.worst_factor == pytest.approx(2.0) and found.mean == pytest.approx((0.1 + 0 + 0.5 + 0.1) / 4)


def timed_as(profile: Profile, lines: Sequence[str], slower: float = 1.0) -> tuple[Judged, ...]:
    """Problems that take just what the model predicts by a profile."""
    of, found = choosers.predictor(profile), []
    for text in lines:
        posed = parse(text)
        tiles, _ = legal(posed.problem, by_name("sm90a"), OURS)
        each: dict[Pick, tuple[float, ...]] = {}
        for variant, config in tiles:
            seconds = of(posed, (variant.path, config))
            assert seconds is not None
            each[variant.path, config] = (slower * seconds,) * 2
        found.append(Judged(posed, each))
    return tuple(found)


PREFILL = [f"prefill 4 16 16 {length} {length} {dim} bf16 {mask}" for length in (1024, 4096) for dim in (64, 128, 256)
           for mask in ("", "causal")]  # fmt: skip


def test_where_a_gpu_is_as_predicted_the_constants_choose_within_the_tie_band():
    problems = timed_as(H200, PREFILL)
    found = regrets(problems, choosers.by_constants(H200))
    assert found.worst <= 0.0201
    assert errors(problems, choosers.predictor(H200)).mean == pytest.approx(0)


def test_wrong_constants_choose_worse_where_a_gpu_is_as_predicted():
    """wgmma at a tenth: the kernel that does without it is picked, which is slower."""
    problems = timed_as(H200, PREFILL)
    wrong = constants.scaled(H200, "wgmma_n128_bf16_flops_per_clk_sm", 0.1)
    assert regrets(problems, choosers.by_constants(wrong)).mean > 0.1


def test_every_constant_can_be_one():
    changed = constants.ones(H200)
    assert {each.value for each in changed.constants} == {1.0} and not changed.doubtful
    assert changed.sm_count == H200.sm_count


def test_constants_of_others_are_filled_with_ideals():
    known = tuple(each for each in H200.constants if each.name == "dram_bandwidth_bytes_per_s")
    other = H200.model_copy(
        update={"constants": (known[0].model_copy(update={"value": 1e12, "low": 1e12}),), "sm_count": 7}
    )
    found = constants.filled(other, H200)
    assert found.value("dram_bandwidth_bytes_per_s") == 1e12 and found.sm_count == H200.sm_count
    assert found.value("mufu_ex2_per_clk_sm") == 16.0 and found.value("smem_latency_cycles") == 12.0
    assert found.value("instruction_fetch_cold_cycles_per_line") < 1e-9  # cycles a line are no rate
    assert found.value("l2_write_back_ratio") < 1e-9 and found.value("l2_write_back_bytes") < 1e-9
    assert not found.doubtful and len(found.constants) == len(H200.constants)


def test_timings_of_other_problems_correct_a_model_that_is_off_by_a_factor():
    problems = timed_as(H200, PREFILL, slower=1.5)
    taught = choosers.timings_of(H200, problems).without(lambda other: choosers.twins(problems[0].posed, other))
    off = errors(problems, choosers.predictor(H200, taught))
    assert off.mean < errors(problems, choosers.predictor(H200)).mean / 2


def test_a_problem_is_not_taught_by_its_twins():
    problems = timed_as(H200, [PREFILL[0], PREFILL[0].replace("bf16", "f16"), PREFILL[1]])
    timings = choosers.timings_of(H200, problems)
    asked: list[Posed] = []
    timings.without(lambda other: bool(asked.append(other)) or choosers.twins(problems[0].posed, other))
    assert asked == [each.posed for each in problems]
    assert [choosers.twins(problems[0].posed, each) for each in asked] == [True, True, False]
    assert not timings.without(lambda other: True)


@pytest.mark.parametrize(
    ("text", "rows", "keys"),
    [
        ("prefill 4 16 16 4096 4096 64 bf16", 192, 128),
        ("prefill 4 16 16 4096 4096 128 bf16", 128, 128),
        ("prefill 4 16 16 4096 4096 192 bf16 causal", 128, 112),
        ("prefill 4 16 16 4096 4096 256 bf16", 128, 80),
    ],
)
def test_flash_attention_4s_tile_or_the_nearest_legal_one_is_taken(text, rows, keys):
    (problem,) = timed_as(H200, [text])
    path, config = choosers.flash_attention_4(problem.posed, problem.picks)
    variant = by_path(path)
    assert path == HOPPER and variant.tile is not None
    tile = variant.tile(problem.posed.problem, config)
    legal_rows = {variant.tile(problem.posed.problem, c).rows for p, c in problem.picks if p == HOPPER}
    legal_keys = {
        c["tile_keys"]
        for p, c in problem.picks
        if p == HOPPER and variant.tile(problem.posed.problem, c).rows == tile.rows
    }
    assert tile.rows == min(legal_rows, key=lambda each: abs(math.log2(each / rows)))
    assert abs(tile.columns - keys) == min(abs(each - keys) for each in legal_keys)


def test_one_tile_a_head_dim_is_the_best_in_hindsight():
    one = Judged(ONE, {pick(96): (1.0, 1.0), pick(112): (1.1, 1.1)})
    longer = Judged(parse("prefill 1 8 8 4096 4096 128 bf16 causal"), {pick(96): (2.0, 2.0), pick(112): (1.0, 1.0)})
    full = Judged(parse("prefill 1 8 8 4096 4096 128 bf16"), {pick(96): (1.0, 1.0), pick(112): (9.0, 9.0)})
    choose = choosers.one_tile_each([one, longer, full])
    assert regrets([one, longer, full], choose).values == pytest.approx((0.1, 0.0, 0.0))
    padded = parse("prefill 1 8 8 2048 2048 120 bf16 causal")
    assert choose(padded, one.picks) == pick(112) and choose(padded, (pick(96), pick(64))) == pick(96)


def test_the_table_holds_every_chooser_and_the_floor_and_names_what_a_limit_refuses():
    problems = timed_as(H200, PREFILL)
    wrong = constants.scaled(H200, "wgmma_n128_bf16_flops_per_clk_sm", 0.1)
    found = table(H200, problems, problems, [Other("slow wgmma", wrong)])
    names = [each.regrets.name for each in found.lines]
    assert {MEASURED, ONES, FA4, ONE_TILE, "slow wgmma"} < {*names}
    assert {"wgmma_n128_bf16_flops_per_clk_sm halved", "mufu_ex2_per_clk_sm doubled"} < {*names}
    assert found.floor.mean == 0 and found.allowed == 0.01
    against = found.line("slow wgmma").against
    assert against is not None and against[1] < 0
    assert not any("slow wgmma" in fault for fault in found.faults)
    turned = table(wrong, problems, problems, [Other("right", H200)], each_constant=False)
    said = " ".join(turned.faults)
    assert "mean regret" in said and "not shown to be better than right" in said and "off by" in said
    assert isinstance(turned.line("right"), Line)
