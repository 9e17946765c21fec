"""Cycles of warpgroups in lockstep: what the formula must keep, whatever the constants are."""

import ast
from dataclasses import replace
from pathlib import Path

import pytest

from attention.campaign.constants import scaled
from attention.choose.prediction import Unpredicted
from attention.choose.model import predict
from attention.choose.warpgroups import coefficients, dealt, predicted, scores, step
from attention.choose.warpgroups.scores import cost_of
from attention.choose.warpgroups.step import Rates, Steps, steps_of
from attention.problem import AttentionProblem
from attention.variant import Config
from microbench.results.profile import Profile

RATES = Rates(4096, 16, 128, 36, 54, 23, 17, 4, 280)
SIZES = Sizes(128, 2, 64, 64, q_in_registers=True)
PROBLEM = AttentionProblem(4, 32, 32, 4096, 4096, 64, dtype="bfloat16", device="cuda")
CONFIG = Config((("tile_keys", 128), ("warpgroups", 3), ("stages", 2), ("q_in_registers", 0)))
HARMLESS = (0, 1, 1e-9, 2)  # nothing, one, a nano, and a half's or a pair's 2


def test_a_step_takes_no_less_than_each_pipe():
    tensor, exponentials = 2 * 128 * (64 + 64) * 64 * 2 / 4096, 2 * 64 * 128 / 16
    assert step_of(SIZES, RATES).period >= max(tensor, exponentials)


def test_larger_tiles_share_the_waits_among_more_keys():
    small, large = (step_of(replace(SIZES, keys=keys), RATES).period / keys for keys in (64, 128))
    assert large < small


@pytest.mark.parametrize("name", [name for name in Rates.__dataclass_fields__ if name.endswith("latency")])
def test_a_longer_latency_takes_longer(name):
    slower = replace(RATES, **{name: 4 * getattr(RATES, name)})
    sizes = replace(SIZES, q_in_registers=False)
    now, then = step_of(sizes, RATES), step_of(sizes, slower)
    assert 4 * then.period + then.around > 4 * now.period + now.around


def test_slower_products_alone_slow_the_clock():
    profile = Profile.load("h200-sxm-141gb")
    slower = scaled(profile, "wgmma_n128_bf16_burst_flops_per_s", 0.5)
    assert seconds.seconds(slower, PROBLEM, CONFIG) > seconds.seconds(profile, PROBLEM, CONFIG)


def test_a_constant_that_is_lacking_is_named():
    profile = Profile.load("h200-sxm-141gb")
    kept = tuple(each for each in profile.constants if each.name != "smem_latency_cycles")
    with pytest.raises(Unpredicted, match="smem_latency_cycles"):
        seconds.seconds(profile.model_copy(update={"constants": kept}), PROBLEM, CONFIG)


@pytest.mark.parametrize("module", [step, seconds])
def test_no_number_stands_outside_of_the_table(module):
    tree = ast.parse(Path(module.__file__).read_text())
    numbers = [
        each.value for each in ast.walk(tree) if isinstance(each, ast.Constant) and type(each.value) in (int, float)
    ]
    assert set(numbers) <= set(HARMLESS)


def test_every_coefficient_says_where_it_is_from():
    assert all(each.kind in ("count", "published", "rule") and each.why for each in coefficients.TABLE.values())
