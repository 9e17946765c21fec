"""Warps that queue at the units of an SM: what the model must keep, whatever the constants are."""

import ast
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attention.choose import queues
from attention.choose.constants import scaled
from attention.choose.lengths import counted
from attention.choose.lines import shared_of
from attention.choose.model import predict
from attention.choose.prediction import Prediction
from attention.choose.queues import Station, round_of, stay
from attention.choose.scores import cost_of
from attention.choose.warps import block, gathered, predicted, waits, work
from attention.choose.warps import dealt as dealing
from attention.choose.warps.block import Block, block_of
from attention.choose.warps.dealt import dealt
from attention.choose.warps.work import Rates, Work
from attention.problem import AttentionProblem
from attention.tile import WarpTile
from attention.variant import Config, by_path
from microbench.results.profile import Profile

RATES = Rates(
    tensor_flops=2700,
    ex2=16,
    ffma=128,
    smem_bytes=128,
    l2_bytes=36,
    dram_bytes=17,
    product_latency=24,
    ex2_latency=17,
    ffma_latency=4,
    smem_latency=23,
    l2_latency=280,
    dram_latency=670,
    ex2_beside=0.84,
    ex2_beside_others=0.8,
    ffma_beside_others=0.06,
    turn_latency=2,
)
TILE = WarpTile(
    blocks=2, warps=4, warp_rows=32, keys=64, slice_keys=32, head_dim=64, value_dim=64, q_in_registers=True, ahead=3
)
PLAIN = AttentionProblem(4, 32, 32, 4096, 4096, 64, dtype="bfloat16", device="cuda")
WORK = Work(slices=128, hidden=2, readers=32, lines=2, parted=0)
CONFIG = Config((("warps", 4), ("tile_keys", 64)))
OURS = by_path("sm80/forward/software_pipelined")
SPLIT_CONFIG = Config((("warps", 4), ("tile_keys", 64), ("key_splits", 4)))
H200 = Profile.load("h200-sxm-141gb")
# Nothing, one, half of a last block, a cube's 3, an iteration's end, caches.
HARMLESS = (0, 1, 1e-3, 2, 3, 30, 2048, 4096)

demands = st.floats(0, 1e4)
stations = st.lists(st.tuples(demands, st.integers(1, 16)), min_size=1, max_size=5).map(
    lambda each: tuple(Station(str(at), demand, customers, "") for at, (demand, customers) in enumerate(each))
)


@given(stations, st.floats(1, 1e5))
def test_a_round_is_the_sum_of_its_stays(asked, thinking):
    found = round_of(asked, thinking)
    assert sum(stay(each, found) for each in asked) + thinking == pytest.approx(found, rel=1e-3)


@given(stations, st.floats(1, 1e5))
def test_a_round_lies_between_the_longest_station_and_everything_in_turn(asked, thinking):
    found = round_of(asked, thinking)
    at_least = max(thinking + sum(each.demand for each in asked), *(each.demand * each.customers for each in asked))
    at_most = thinking + sum(each.demand * each.customers for each in asked)
    assert at_least * (1 - 1e-6) <= found <= at_most * (1 + 1e-6)


@given(demands, st.floats(1, 1e5))
def test_a_customer_alone_waits_for_nobody(demand, thinking):
    assert round_of((Station("", demand, 1, ""),), thinking) == pytest.approx(demand + thinking)


def block_at(
    tile: WarpTile = TILE, problem: AttentionProblem = PLAIN, rates: Rates = RATES, resident: int = 2, work: Work = WORK
) -> Block:
    return block_of(tile, cost_of(problem), work, resident, rates)


def ours(problem: AttentionProblem = PLAIN, profile: Profile = H200) -> Prediction:
    return predict(profile, problem, OURS, CONFIG)


def test_a_block_is_the_sum_of_its_parts():
    assert sum(part.cycles for part in block_at().parts()) == pytest.approx(block_at().cycles, rel=1e-3)


def test_a_block_that_shares_the_sm_takes_longer_but_not_twice_as_long():
    alone, shared = block_at(resident=1).cycles, block_at().cycles
    assert alone < shared < 2 * alone


# DRAM's share alone counts where blocks begin together (test_tiles_under_way.py).
@pytest.mark.parametrize("name", [name for name in Rates._fields if name != "dram_share"])
def test_what_is_slower_takes_longer(name):
    narrow = TILE._replace(ahead=1, warp_rows=16)  # products too short to hide the fetching of their fragments
    factor = 4 if name.endswith("latency") else 1 / 4
    slower = RATES._replace(**{name: factor * getattr(RATES, name)})
    assert block_at(narrow, rates=slower).cycles > block_at(narrow).cycles


def test_q_that_stays_in_registers_is_not_read_again():
    assert block_at(TILE._replace(q_in_registers=False)).cycles > block_at().cycles


@pytest.mark.parametrize(("head_dim", "spans"), [(144, (32, 32)), (160, (64, 64)), (192, (128, 128))])
def test_rows_are_copied_in_spans_of_their_swizzle(head_dim, spans):
    found = OURS.residents(replace(PLAIN, head_dim=head_dim, head_dim_v=head_dim), CONFIG)
    assert (found.key_span_bytes, found.value_span_bytes) == spans


@pytest.mark.parametrize(("head_dim", "lines"), [(64, 2), (96, 6), (144, 18), (168, 34.5), (248, 17.75)])
def test_spans_that_cross_lines_touch_more_of_them(head_dim, lines):
    problem = replace(PLAIN, heads_q=33, heads_kv=33, head_dim=head_dim, head_dim_v=head_dim)
    assert dealt(problem, OURS.residents(problem, CONFIG), 132).at_least.work.lines == lines


def test_a_mask_is_waited_for_by_each_panel_and_from_dram_by_blocks_that_begin_together():
    masked, cold = cost_of(replace(PLAIN, mask="bool")), WORK._replace(cold=1.0)

    def waited(tile: WarpTile, work: Work = WORK) -> float:
        found = block_of(tile, masked, work, 2, RATES)
        return next(each.cycles for each in found.parts() if each.term == "mask from L2")

    assert waited(TILE) == 2 * waited(TILE._replace(warp_rows=16)) < waited(TILE, cold)
    lone = TILE._replace(warps=8, blocks=1)
    alone, shared = (block_of(lone, masked, WORK, resident, RATES) for resident in (1, 2))
    mask = [next(each.cycles for each in found.parts() if each.term == "mask from L2") for found in (alone, shared)]
    assert mask[0] == 1.5 * mask[1]  # two slices a tile, and one wait more behind its barrier


def test_a_line_that_is_copied_in_parts_takes_the_load_unit_for_each():
    assert block_at(work=WORK._replace(lines=4)).cycles > block_at().cycles


def test_larger_tiles_meet_fewer_barriers():
    assert block_at(TILE._replace(keys=128)).cycles < block_at().cycles


@pytest.mark.parametrize(
    "asked", [{"softcap": 30.0}, {"alibi": True}, {"mask": "bool"}, {"mask": "float", "mask_dtype": "float32"}]
)
def test_a_feature_costs_what_it_costs(asked):
    assert block_at(problem=replace(PLAIN, **asked)).cycles > block_at().cycles


def test_blocks_come_in_whole_rounds_and_a_last_one_that_may_find_the_sm_free():
    one = replace(PLAIN, batch=1, heads_q=1, heads_kv=1)  # 32 blocks of 128 rows
    found = dealt(one, TILE, 10)
    assert [(each.resident, each.times) for each in found.stays] == [(2, 1), (2, 1.0)]
    assert [(each.resident, each.times) for each in dealt(one, TILE, 14).stays] == [(2, 1), (1, 1.0)]


@pytest.mark.parametrize(("asked", "tiles"), [({}, 1), ({"causal": True}, 2), ({"window": (1024, 0)}, 2 + 2 + 63 / 64)])
def test_tiles_that_an_edge_meets_are_hidden_ones(asked, tiles):
    found = dealt(replace(PLAIN, **asked), TILE, 132)
    assert found.at_least.work.hidden == pytest.approx(2 * tiles)


def test_a_mask_hides_in_every_slice():
    work = dealt(replace(PLAIN, mask="bool"), TILE, 132).at_least.work
    assert work.hidden == work.slices == 128


def test_a_first_tile_hides_no_more_slices_than_have_keys():
    longer = dealt(replace(PLAIN, seq_kv=4097), TILE._replace(keys=128), 132).at_least.work
    assert (longer.slices, longer.hidden) == (129, 1)


def test_a_lone_warp_hides_its_exponentials_behind_its_products():
    alone = TILE._replace(warps=1)
    apart = block_at(alone, rates=RATES._replace(ex2_beside=0.0, ex2_beside_others=1.0), resident=1)
    beside = block_at(alone, rates=RATES._replace(ex2_beside=1.0, ex2_beside_others=1.0), resident=1)
    exponentials = WORK.slices * TILE.scores / (RATES.ex2 / 4)
    seen = 1 - WORK.hidden / WORK.slices
    assert apart.cycles - beside.cycles == pytest.approx(seen * exponentials, rel=1e-6)


def test_scores_of_few_keys_and_rows_wait_for_each_other():
    def waits(keys: int) -> float:
        tile = TILE._replace(warp_rows=16, keys=keys, slice_keys=keys)
        found = block_at(tile, work=WORK._replace(slices=WORK.slices * 32 / keys))
        return next(part.cycles for part in found.parts() if part.term == "waits for products") * keys

    assert waits(16) > waits(32) * 1.05


SPLIT = by_path("sm80/forward/split_keys")
DECODE = AttentionProblem(2, 32, 8, 1, 2048, 128, dtype="bfloat16", device="cuda")


def split(key_splits: int, problem: AttentionProblem = DECODE) -> WarpTile:
    found = SPLIT.residents(problem, Config((("warps", 4), ("tile_keys", 64), ("key_splits", key_splits))))
    assert isinstance(found, WarpTile)
    return found


def test_blocks_without_keys_take_their_time():
    whole, more = (dealt(DECODE, split(key_splits), 132) for key_splits in (32, 64))
    assert (whole.empty, more.empty) == (0, 16 * 32 / (132 * 2)) and whole.stays == more.stays


def test_a_short_sequence_is_shared_by_no_more_blocks_than_it_has_tiles():
    lengths = counted([1, 1], [2048, 100])
    found = dealt(DECODE, split(32), 132, lengths)
    assert found.empty * 132 * 2 == 8 * (32 - 2)


def test_heads_of_a_group_see_what_their_query_sees():
    square = replace(DECODE, seq_q=512, seq_kv=512, causal=True)
    packed, lone = (dealt(square, split(1)._replace(group=group), 132).slices for group in (4, 1))
    assert packed == pytest.approx(lone, rel=0.2)


def added(term: str, parts: int, beyond: float = 0.0, gathering: float = 1.0) -> float:
    every = gathered.added(split(64), 4, parts, beyond, gathering, RATES)
    return next(each.cycles for each in every if each.term == term)


def test_a_batch_of_parts_is_waited_for_once_and_read_byte_by_byte():
    trips, read = ([added(term, parts) for parts in (2, 16, 32)] for term in ("trips for parts", "parts from L2"))
    assert trips[0] == trips[1] == trips[2] / 2 and read[0] == read[1] / 8 == read[2] / 16


def test_few_blocks_that_gather_have_more_of_the_l2_each_up_to_what_an_sms_port_takes():
    alone, all_of_them = (added("parts from L2", 8, gathering=share) for share in (0.01, 1.0))
    assert alone < all_of_them == pytest.approx(alone * 64 / RATES.l2_bytes)


def test_parts_that_the_l2_does_not_hold_go_to_dram_and_come_back():
    assert added("parts from DRAM", 8) == 0 < added("parts from DRAM", 8, beyond=0.5)
    many = replace(DECODE, batch=64, heads_q=64, heads_kv=64, seq_q=512)
    few = replace(DECODE, batch=1, seq_q=128)
    seconds = [
        sum(each.seconds for each in predict(H200, asked, SPLIT, SPLIT_CONFIG).terms if each.term == "parts to DRAM")
        for asked in (few, many)
    ]
    assert seconds[0] == 0 < seconds[1]


def test_tiles_of_rows_beyond_a_round_are_gathered_one_after_another():
    def gathered_in(batch: int) -> float:
        found = predict(H200, replace(DECODE, batch=batch), SPLIT, SPLIT_CONFIG)
        return sum(each.seconds for each in found.terms if each.term == "parts are added")

    assert gathered_in(128) > 1.5 * gathered_in(8)


def test_rows_that_begin_inside_of_sectors_have_some_sent_twice():
    assert shared_of(240, 32) == shared_of(128, 128) == 0 < shared_of(72, 32) < shared_of(232, 32)


def test_code_that_no_sm_holds_yet_is_fetched_once_where_a_profile_knows_at_what_price():
    name = "instruction_fetch_cold_cycles_per_line"
    cold = next(each for each in ours().terms if each.constant == name)
    assert 0.5e-6 < cold.seconds < 2e-6
    kept = tuple(each for each in H200.constants if each.name != name)
    assert ours(profile=H200.model_copy(update={"constants": kept})).seconds == pytest.approx(
        ours().seconds - cold.seconds
    )


def test_a_prediction_is_the_sum_of_what_is_not_memory():
    found = ours()
    assert found.seconds == pytest.approx(sum(each.seconds for each in found.terms if each.phase != "memory"), rel=1e-3)


def test_a_slow_l2_becomes_the_bound():
    slow = ours(profile=scaled(H200, "l2_bandwidth_bytes_per_s", 0.05))
    assert slow.bound_by in ("rows by the L2", "loads of a tile ahead")


def test_a_profile_without_latencies_is_predicted_by_the_tile_alone():
    kept = tuple(each for each in H200.constants if each.name != "mufu_ex2_latency_cycles")
    poorer = H200.model_copy(update={"constants": kept})
    assert not predicted.can(poorer) and {each.phase for each in ours(profile=poorer).terms} >= {"tile", "softmax"}


@pytest.mark.parametrize("module", [block, dealing, gathered, predicted, queues, waits, work])
def test_no_number_stands_outside_of_the_table(module):
    tree = ast.parse(Path(module.__file__).read_text())
    numbers = [
        each.value for each in ast.walk(tree) if isinstance(each, ast.Constant) and type(each.value) in (int, float)
    ]
    assert set(numbers) <= set(HARMLESS)
