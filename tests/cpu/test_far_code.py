"""Code behind what a launch asks for ahead comes late: where ptxas lays the producer of a large build."""

from dataclasses import replace

import pytest

from attention.choose.model import predict
from attention.choose.rates import FAR_FETCH
from attention.problem import AttentionProblem
from attention.variant import Config, by_path
from microbench.results.profile import Profile

H200 = Profile.load("h200-sxm-141gb")
FEW = AttentionProblem(
    *(1, 32, 8, 13, 5429, 128), dtype="bfloat16", device="cuda", causal=True, alignment="bottom_right"
)


def far(problem: AttentionProblem, tile_keys: int, profile: Profile = H200) -> float:
    config = Config((("tile_keys", tile_keys), ("warpgroups", 2), ("key_splits", 8)))
    terms = predict(profile, problem, by_path("sm90a/forward/split_keys"), config).terms
    return sum(term.seconds for term in terms if term.term == "the producer's code, laid far off")


def test_the_largest_causal_build_waits_for_its_producers_code() -> None:
    assert 1e-6 < far(FEW, 176) < 5e-6


@pytest.mark.parametrize(("problem", "tile_keys"), [(FEW, 112), (replace(FEW, causal=False), 176)])
def test_smaller_builds_do_not(problem: AttentionProblem, tile_keys: int) -> None:
    assert far(problem, tile_keys) == 0


def test_a_profile_that_does_not_say_what_far_code_costs_has_none() -> None:
    known = tuple(each for each in H200.constants if each.name != FAR_FETCH)
    assert far(FEW, 176, H200.model_copy(update={"constants": known})) == 0
