"""What the model's constants make of the problems of set a, as an H200 timed them twice.

Two rules of the model were chosen by these timings, so that this keeps what was reached and proves nothing; set b does.
Problems with masks are left out: the kernel that these campaigns timed read a byte at a time, and today's does not.
"""

from functools import cache

import pytest

from attention.campaign import choosers, rows
from attention.campaign.regret import Judged, choices, errors, interval, judged, regrets
from microbench.results.profile import Profile

GPU = "h200-sxm-141gb"
OURS = "sm90a/forward/warp_specialised"
H200 = Profile.load(GPU)


@cache
def problems() -> tuple[Judged, ...]:
    timed = (rows.read(GPU, "a", number) for number in rows.campaigns(GPU, "a")[:2])
    unmasked = (tuple(row for row in found if row.problem.mask == "none") for found in timed)
    return choices(judged(*unmasked), OURS)


def test_the_hopper_forwards_tile_is_chosen_by_constants_alone() -> None:
    found = regrets(problems(), choosers.by_constants(H200))
    assert found.mean <= 0.01 and found.worst <= 0.06


@pytest.mark.parametrize("other", ["FlashAttention-4's tiles", "one tile each"])
def test_a_table_that_knows_no_gpu_chooses_worse(other: str) -> None:
    by = {
        "FlashAttention-4's tiles": choosers.flash_attention_4,
        "one tile each": choosers.one_tile_each(problems()),
    }[other]
    assert interval(regrets(problems(), choosers.by_constants(H200)), regrets(problems(), by))[1] < 0


def test_predictions_of_the_hopper_forward_are_near_what_was_timed() -> None:
    found = errors(problems(), choosers.predictor(H200))
    assert found.mean <= 0.10 and max(found.of_class.values()) <= 0.20 and found.worst_factor <= 2.0
