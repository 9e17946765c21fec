"""Blocks of the decode kernel that have an SM each: what they wait for, and for what they do not."""

import pytest

from attention.choose.coefficients.table import of
from attention.choose.one_clock import Loads, _waited
from attention.choose.prediction import Term
from attention.choose.rates import machine_of
from attention.choose.scores import cost_of
from attention.choose.warps.block import block_of
from attention.choose.warps.dealt import dealt
from attention.choose.warps.predicted import rates_of
from attention.choose.warps.work import Work
from attention.problem import AttentionProblem
from attention.variant import Config, by_path
from microbench.results.profile import Profile

CONFIG = Config((("warps", 4), ("tile_keys", 64), ("key_splits", 1), ("key_stages", 3)))
DECODE = by_path("sm80/forward/split_keys")
RATES = rates_of(machine_of(Profile.load("h200-sxm-141gb")), 132)
AT_HAND = RATES._replace(dram_bytes=1e6, l2_bytes=1e6)  # loads take nothing beside their latency


def problem_of(heads_kv: int) -> AttentionProblem:
    return AttentionProblem(1, 8, heads_kv, 1, 8000, 112, dtype="bfloat16", device="cuda")


@pytest.mark.parametrize(("resident", "waits"), [(1, 1), (2, 0)])
def test_a_lone_block_waits_for_each_line_that_heads_share(resident: int, waits: int) -> None:
    problem = problem_of(8)
    tile = DECODE.residents(problem, CONFIG)
    whole, parted = (Work(slices=500, hidden=1, readers=1, lines=7, parted=each) for each in (0, 1.5))
    longer, shorter = (block_of(tile, cost_of(problem), each, resident, AT_HAND).cycles for each in (parted, whole))
    keys = 500 * tile.step_keys
    assert longer - shorter == pytest.approx(waits * of("parted_line_waits") * 1.5 * keys, rel=0.2)


@pytest.mark.parametrize("heads_kv", [1, 8])
def test_rows_of_one_head_fill_each_others_lines(heads_kv: int) -> None:
    problem = problem_of(heads_kv)
    work = dealt(problem, DECODE.residents(problem, CONFIG), 132).at_least.work
    assert work.parted == (0 if heads_kv == 1 else work.lines - 2 * 112 * 2 / 128)


def test_a_sector_that_is_sent_twice_is_no_line_more() -> None:
    problem = AttentionProblem(1, 9, 3, 1, 8000, 104, dtype="bfloat16", device="cuda")
    work = dealt(problem, DECODE.residents(problem, CONFIG), 132).at_least.work
    assert work.parted == pytest.approx(1.75)
    assert work.lines > work.parted + 2 * 104 * 2 / 128


def test_blocks_that_have_an_sm_each_wait_half_as_long_in_the_queue_of_loads() -> None:
    memory = Term("L2", "memory", 1e-5, "", 0.0), Term("DRAM", "memory", 2e-5, "", 0.0)
    queued, in_step = (_waited(2e-5, memory, memory[1], Loads(6, lone)) for lone in (False, True))
    assert 0 < in_step == of("queued_in_step") * queued


def test_rows_that_nobody_uses_are_not_loaded() -> None:
    problem = problem_of(8)
    tile, work = DECODE.residents(problem, CONFIG), dealt(problem, DECODE.residents(problem, CONFIG), 132).at_least.work
    few, all_of_them = (
        next(part.cycles for part in block_of(of_rows, cost_of(problem), work, 1, RATES).parts() if "out" in part.term)
        for of_rows in (tile, tile._replace(used_rows=tile.rows))
    )
    assert tile.used_rows == 1 and all_of_them - few == pytest.approx(15 * 4 * 112 / RATES.dram_bytes)


@pytest.mark.parametrize("stages", [2, 3, 4])
def test_so_many_tiles_are_under_way_at_a_time(stages: int) -> None:
    problem, latency, tiles = problem_of(8), 1e5, 100
    tile = DECODE.residents(problem, CONFIG)._replace(stages=stages)
    work = Work(slices=tiles * tile.keys / tile.step_keys, hidden=1, readers=1, lines=7, parted=0)
    found = block_of(tile, cost_of(problem), work, 1, AT_HAND._replace(dram_latency=latency))
    assert found.cycles == pytest.approx(tiles * latency / (stages - 1), rel=0.1)
