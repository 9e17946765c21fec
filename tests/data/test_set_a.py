"""What the model's constants make of the problems of set a, as an H200 timed them twice.

Rules of the model were chosen by such timings, so that this keeps what was reached and proves nothing; set b does. An
H200's last two campaigns are of kernels that differ in bools of few keys, up to 10 % of their time, and in ALiBi, 3 to
5 %. An H100's are of the Hopper forward before, of which problems with masks are left out: they were read otherwise.
"""

from functools import cache

import pytest

from attention.campaign import choosers, rows
from attention.campaign.regret import Judged, choices, errors, interval, judged, regrets
from attention.kernels.sm90a.packed import packed
from microbench.results.profile import Profile

GPU, OTHER = "h200-sxm-141gb", "h100-sxm-80gb"
OURS = "sm90a/forward/warp_specialised"
AMPERE = "sm80/forward/software_pipelined"
H200, H100 = Profile.load(GPU), Profile.load(OTHER)
DISTURBED = "B=1 Hq=16 Hkv=4 Sq=1 Skv=1400 D=128 "  # of the H200's campaign 25


@cache
def problems(variant: str = OURS, gpu: str = GPU) -> tuple[Judged, ...]:
    timed = (rows.read(gpu, "a", number) for number in rows.campaigns(gpu, "a")[-2:])
    # Problems whose heads share rows had other builds when an H100 timed them.
    of_today = (
        tuple(row for row in found if gpu == GPU or (row.problem.mask == "none" and not packed(row.problem, 2)))
        for found in timed
    )
    return choices(judged(*of_today), variant)


def test_the_hopper_forwards_tile_is_chosen_by_constants_alone() -> None:
    found = regrets(problems(), choosers.by_constants(H200))
    # A mask of 16 x 12 heads' 256 keys: tiles of 128 keys, where 64 take 22.0 us for 24.5.
    assert found.mean <= 0.0085 and found.worst <= 0.13


@pytest.mark.parametrize("other", ["FlashAttention-4's tiles", "one tile each"])
def test_a_table_that_knows_no_gpu_chooses_worse(other: str) -> None:
    by = {
        "FlashAttention-4's tiles": choosers.flash_attention_4,
        "one tile each": choosers.one_tile_each(problems()),
    }[other]
    assert interval(regrets(problems(), choosers.by_constants(H200)), regrets(problems(), by))[1] < 0


def test_predictions_of_the_hopper_forward_are_near_what_was_timed() -> None:
    found = errors(problems(), choosers.predictor(H200))
    assert found.mean <= 0.05 and max(found.of_class.values()) <= 0.10 and found.worst_factor <= 1.3


def test_the_ampere_forwards_tile_is_chosen_by_constants_alone() -> None:
    found = regrets(problems(AMPERE), choosers.by_constants(H200))
    assert found.mean <= 0.0055 and found.worst <= 0.078


@pytest.mark.parametrize("profile", [H200, H100], ids=lambda each: each.gpu)
def test_predictions_of_the_ampere_forward_are_near_what_was_timed(profile: Profile) -> None:
    timed = [each for each in problems(AMPERE, profile.gpu) if not str(each.posed).startswith(DISTURBED)]
    found = errors(timed, choosers.predictor(profile))
    assert found.mean <= 0.10 and max(found.of_class.values()) <= 0.20 and found.worst_factor <= 2.0


def test_the_problem_that_is_left_out_was_disturbed() -> None:
    """A configuration of two samples, in microseconds: 42 and 43 in one campaign, 450 and 63 in the next."""
    before, after = (
        next(row for row in rows.read(GPU, "a", number) if str(row.posed).startswith(DISTURBED)) for number in (24, 25)
    )
    of = {"warps": 4, "tile_keys": 32}
    alone, disturbed = (
        next(tile.median for tile in row.tiles if (tile.variant, tile.config) == (AMPERE, of))
        for row in (before, after)
    )
    assert disturbed > 5 * alone


def test_among_all_kernels_of_ours_constants_alone_choose_well() -> None:
    found = regrets(problems(""), choosers.by_constants(H200))
    # The worst is the same mask. The 89 problems of campaign 22 lose 0.5 %, the 74 that joined since, most of a few
    # microseconds, four times as much.
    assert found.mean <= 0.0125 and found.worst <= 0.13


def test_constants_of_another_board_choose_nearly_as_well_on_it() -> None:
    found = regrets(problems("", H100.gpu), choosers.by_constants(H100))
    # 16 queries of 32 heads on eight, 8192 keys: 8 blocks for their keys, where 16 take 36.5 us for 40.8.
    assert found.mean <= 0.009 and found.worst <= 0.12
