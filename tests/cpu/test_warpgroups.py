"""Warpgroups that share an SM: what the model must keep, whatever the constants are."""

import ast
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from attention.choose import lines, one_clock, scores
from attention.choose.choose import choose
from attention.choose.coefficients import table as coefficients
from attention.choose.constants import scaled
from attention.choose.foreseen import foreseen
from attention.choose.lines import lines_of, slots_of
from attention.choose.model import predict
from attention.choose.prediction import Efficiency, Prediction, Unpredicted
from attention.choose.queues import together
from attention.choose.shares import rows_of_all, rows_read, sequences
from attention.choose.warpgroups import dealt, gathered, handed, masks, parts, predicted, step
from attention.choose.warpgroups.dealt import dealt as deal
from attention.choose.warpgroups.handed import changes
from attention.choose.warpgroups.parts import Rates
from attention.choose.warpgroups.step import Steps
from attention.problem import AttentionProblem
from attention.tile import WarpgroupTile
from attention.variant import Config
from microbench.machine.arch import by_name
from microbench.results.profile import Profile
from tests.cpu.warpgroup_tiles import H200, OURS, PLAIN, RATES, TILE, made, steps

CROSSED = WarpgroupTile(128, 2, 64, 64, q_in_registers=True, stages=4)
PACKED = replace(PLAIN, batch=9, varlen=True, tokens_q=4096 + 8 * 128, tokens_kv=4096 + 8 * 128)
CONFIG = Config((("tile_keys", 128), ("warpgroups", 3), ("stages", 2), ("q_in_registers", 0)))
HARMLESS = (0, 1, 1e-9, 2, 4096, 1024)  # nothing, one, a nano, a half's or a pair's 2, sizes of caches


def of_four_tiles(found: Steps) -> float:
    """Cycles of a tile of rows and its four tiles of keys, and of the change to the next."""
    return 4 * found.keys.cycles + found.rows.cycles + found.changes.cycles + found.late.cycles


def ours(problem: AttentionProblem = PLAIN, profile: Profile = H200) -> Prediction:
    return predict(profile, problem, OURS, CONFIG)


def test_a_step_takes_no_less_than_each_pipe():
    tensor, exponentials = 2 * 128 * (64 + 64) * 64 * 2 / 4096, 2 * 64 * 128 / 16
    assert steps().keys.cycles >= max(tensor, exponentials)


def test_larger_tiles_share_the_waits_among_more_keys():
    small, large = (steps(TILE._replace(keys=keys)).keys.cycles / keys for keys in (64, 128))
    assert large < small


@pytest.mark.parametrize("name", [name for name in Rates._fields if name.endswith("latency")])
def test_a_longer_latency_takes_longer(name):
    # Only masks of 32 bits, which no row of shared memory holds ahead, are waited for at L2, and a lone warpgroup
    # alone waits out what a hand-over takes.
    problem = replace(PLAIN, mask="float", mask_dtype="float32") if name == "l2_latency" else PLAIN
    tile = TILE._replace(q_in_registers=name == "held_latency", warpgroups=1 if name == "handover_latency" else 2)
    now, then = (steps(tile, problem, rates) for rates in (RATES, RATES._replace(**{name: 4 * getattr(RATES, name)})))
    assert of_four_tiles(then) > of_four_tiles(now)


@pytest.mark.parametrize("held", [False, True])
def test_behind_short_steps_the_next_rows_come_late_wherever_q_is_kept(held):
    tile = WarpgroupTile(64, 2, 128, 128, held, key_panel=64, value_panel=64)
    short, long = (steps(tile._replace(keys=keys)) for keys in (64, 128))
    assert short.changes.cycles + short.late.cycles > 300 > long.changes.cycles + long.late.cycles


def test_a_sequence_that_is_searched_for_is_found_later():
    late = [steps(TILE._replace(sequences=many, keys=64)).late.cycles for many in (1, 2, 64, 65)]
    halving = coefficients.of("beside_consumers") * coefficients.of("search_instructions")
    assert late[3] - late[2] == pytest.approx(halving) and late[0] <= late[1] <= late[2]


def test_more_boxes_are_asked_for_later():
    tile = WarpgroupTile(64, 2, 96, 96, q_in_registers=True, key_panel=64, value_panel=64)
    assert steps(tile._replace(key_panel=32, value_panel=32)).late.cycles > steps(tile).late.cycles


def test_no_rows_are_waited_for_behind_the_last_and_few_keys_leave_room_for_the_next():
    assert changes(TILE, keys=8, rows=1) == (0, 0)
    assert changes(TILE, keys=8, rows=4) == (3, 0) and changes(TILE, keys=16, rows=4) == (3, 3)
    assert changes(CROSSED, keys=16, rows=4) == (3, 0)


def test_rows_that_cross_end_sooner_and_are_no_faster_between():
    held, crossed = (steps(tile) for tile in (CROSSED._replace(stages=2), CROSSED))
    assert crossed.rows.cycles < held.rows.cycles and crossed.keys == held.keys


def test_rows_cross_where_they_are_short_and_q_is_in_registers():
    short = replace(PLAIN, seq_q=256, seq_kv=256)
    config = {"tile_keys": 128, "warpgroups": 2, "stages": 3, "q_in_registers": 1}
    asked = partial(OURS.illegal, arch=by_name("sm90a"))
    assert asked(short, made(config)) is None
    assert "up to 512 keys" in asked(replace(short, seq_kv=513), made(config))
    assert "head dims up to 96" in asked(replace(short, head_dim=128, head_dim_v=128), made(config))
    assert "Q in registers" in asked(short, made(config | {"q_in_registers": 0}))
    assert "causal and packed" in asked(replace(short, softcap=30.0), made(config))
    assert "beyond 128 keys" in asked(short, made(config | {"tile_keys": 144}))
    assert "rings of 4" in asked(short, made(config | {"tile_keys": 96}))


@pytest.mark.parametrize(
    "asked",
    [
        *({"softcap": 30.0}, {"alibi": True}, {"mask": "bool"}, {"mask": "float"}),
        *({"mask": "float", "mask_dtype": "float32"}, {"causal": True}, {"window": (1024, 0)}),
    ],
)
def test_a_feature_costs_what_it_costs(asked):
    asks = replace(PLAIN, **asked)
    before, after = steps(), steps(problem=asks)
    assert 9 * after.keys.cycles + after.edges.cycles > 9 * before.keys.cycles + (
        before.edges.cycles if "causal" in asked or "window" in asked else 0.0
    )


@pytest.mark.parametrize("mask", ["bool", "float"])
@pytest.mark.parametrize("head_dim", [64, 128, 256])
def test_a_masked_problem_takes_the_hopper_forward(head_dim, mask):
    asks = replace(PLAIN, head_dim=head_dim, head_dim_v=head_dim, scale=None, mask=mask)
    assert choose(H200, asks, only="smscope").pick.variant == OURS.path


def test_packed_sequences_are_the_longest_and_the_rest_alike():
    assert [(count, one.seq_q, one.seq_kv) for count, one in sequences(PACKED)] == [(1, 4096, 4096), (8, 128, 128)]
    found = rows_of_all(PACKED, 128, 128, 128, 128)
    assert (found.number, found.longest, found.shortest) == (32 * (32 + 8), 32, 1)
    assert found.total == 32 * (32 * 32 + 8)
    alike = replace(PLAIN, batch=4, varlen=True, tokens_q=4 * 4096, tokens_kv=4 * 4096)
    assert deal(alike, 128, 128, 132).in_all == deal(PLAIN, 128, 128, 132).in_all


def test_a_long_sequence_among_short_ones_is_not_taken_for_many_of_a_mean_length():
    mean = round(PACKED.tokens_q / 9)
    evenly = replace(PACKED, seq_q=mean, seq_kv=mean)
    assert ours(PACKED).seconds > 2 * ours(evenly).seconds


def test_what_a_window_hides_of_a_cache_is_not_read():
    token = replace(PLAIN, seq_q=1, seq_kv=4096, window=(1023, -1), alignment="bottom_right")
    assert rows_read(token) == 4 * 32 * (1 + 1024)
    assert rows_read(replace(token, window=(-1, -1))) == 4 * 32 * (1 + 4096)
    assert rows_read(replace(PLAIN, causal=True)) == rows_read(PLAIN) == 4 * 32 * 2 * 4096


@pytest.mark.parametrize(
    ("dim", "span", "slots"),
    [(64, 128, 2), (128, 128, 4), (80, 32, 5), (80, 64, 4), (72, 32, 7), (72, 64, 5.5), (168, 32, 16)],
)
def test_narrow_spans_take_more_slots_of_l2_and_most_where_rows_begin_inside_of_sectors(dim, span, slots):
    assert slots_of(dim, span) == slots >= dim / 32


def test_loads_wait_for_each_other_where_memory_is_nearly_as_slow_as_the_sm():
    tile = OURS.residents(PLAIN, CONFIG)._replace(boxes=0)
    waits = [each.seconds for each in ours().terms if each.phase == "queue"]
    alone = predicted.predicted(H200, PLAIN, tile, Efficiency())
    assert waits and waits[0] > 0 and ours().seconds == pytest.approx(alone.seconds + waits[0])


def test_with_many_loads_under_way_the_slowest_alone_counts():
    many = 1_000_000
    assert together(3, (2, 1), 1, 1) == pytest.approx(6) and together(3, (2, 1), many, 1) == pytest.approx(3, rel=1e-4)
    assert together(3, (2, 1), 4, 1) > together(3, (2, 1), 8, 1) > 3
    assert together(3, (2, 1), 4, 1) > together(3, (2, 1), 4, 2) > together(3, (2, 1), 4, many) > 3


@pytest.mark.parametrize(
    ("dim", "touched"), [(64, 1), (128, 2), (256, 4), (96, 2.5), (72, 2.875), (112, 3.25), (40, 1.5)]
)
def test_rows_that_are_no_whole_lines_touch_more_of_them(dim, touched):
    assert lines_of(dim) == touched >= dim / 64


def test_slower_products_alone_slow_the_clock():
    slower = scaled(H200, "wgmma_n128_bf16_burst_flops_per_s", 0.5)
    assert ours(profile=slower).seconds > ours().seconds


def test_a_slow_l2_becomes_the_bound():
    assert ours(profile=scaled(H200, "l2_bandwidth_bytes_per_s", 0.1)).bound_by == "rows by the L2"


def test_a_prediction_is_the_sum_of_the_longest_of_each_phase():
    found = ours()
    phases = {each.phase for each in found.terms} - {"memory"}
    longest = sum(max(each.seconds for each in found.terms if each.phase == phase) for phase in phases)
    assert found.seconds == pytest.approx(longest)


def test_a_constant_that_is_lacking_is_named():
    kept = tuple(each for each in H200.constants if each.name != "smem_latency_cycles")
    with pytest.raises(Unpredicted, match="smem_latency_cycles"):
        ours(profile=H200.model_copy(update={"constants": kept}))


def test_what_is_known_of_a_tile_is_told_where_a_constant_is_lacking():
    kept = tuple(each for each in H200.constants if each.name != "l2_bandwidth_bytes_per_s")
    found = foreseen(H200.model_copy(update={"constants": kept}), PLAIN, OURS, CONFIG)
    assert found.prediction is None and "l2_bandwidth_bytes_per_s" in found.absent
    assert found.at_least is not None and found.at_least.bound_by == "products on wgmma"


@pytest.mark.parametrize("module", [step, handed, gathered, masks, parts, scores, dealt, predicted, lines, one_clock])
def test_no_number_stands_outside_of_the_table(module):
    tree = ast.parse(Path(module.__file__).read_text())
    numbers = [
        each.value for each in ast.walk(tree) if isinstance(each, ast.Constant) and type(each.value) in (int, float)
    ]
    assert set(numbers) <= set(HARMLESS)


def test_every_coefficient_says_where_it_is_from():
    assert all(each.kind in ("count", "published", "rule") and each.why for each in coefficients.TABLE.values())


def test_a_mask_of_odd_rows_is_copied_before_and_wider_integers_make_it_shorter():
    masked = replace(PLAIN, seq_q=8192, mask="bool")
    seconds = [
        sum(each.seconds for each in ours(replace(masked, seq_kv=keys)).terms if each.term == "mask laid out anew")
        for keys in (8192, 8196, 8193)
    ]
    assert seconds[0] == 0 < 3 * seconds[1] < seconds[2]
