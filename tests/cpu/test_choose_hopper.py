"""What the committed profile of an H100 makes of our kernel for it, and that its constants decide."""

from dataclasses import replace
from typing import Any

import pytest

from attention.choose import learned
from attention.choose.choose import Choice, choose
from attention.problem import AttentionProblem
from attention.variant import by_path
from microbench.results.profile import Profile

H100 = Profile.load("h100-sxm-80gb")
OURS = "sm90a/forward/warp_specialised"


def problem(head_dim: int = 128, length: int = 4096, causal: bool = False) -> AttentionProblem:
    sizes = (16384 // length, 16, 16, length, length, head_dim)
    return AttentionProblem(*sizes, dtype="bfloat16", device="cuda", causal=causal)


def altered(**factors: float) -> Profile:
    """That profile with some constants multiplied."""
    assert factors.keys() <= {constant.name for constant in H100.constants}
    constants = tuple(
        each.model_copy(
            update={end: getattr(each, end) * factors.get(each.name, 1.0) for end in ("value", "low", "high")}
        )
        for each in H100.constants
    )
    return H100.model_copy(update={"constants": constants})


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("length", [1024, 4096, 16384])
@pytest.mark.parametrize("head_dim", [64, 128])
def test_our_kernel_is_picked(head_dim: int, length: int, causal: bool) -> None:
    choice = choose(H100, problem(head_dim, length, causal), efficiencies=learned.of_machine(H100))
    assert (choice.pick.variant, choice.fallback) == (OURS, None)


def ours(profile: Profile, length: int = 4096) -> Choice:
    return choose(profile, problem(length=length), only="smscope")


def test_slower_l2_takes_more_rows_that_share_keys() -> None:
    before, after = (ours(altered(l2_bandwidth_bytes_per_s=factor), length=1024).pick for factor in (1.5, 0.2))
    assert before.config["warpgroups"] < after.config["warpgroups"]
    assert after.prediction is not None and after.prediction.bound_by == "rows by the L2"


def test_slower_shared_memory_leaves_only_tiles_that_keep_q_in_registers() -> None:
    def keeps(factor: float) -> set[int]:
        choice = ours(altered(smem_bandwidth_bytes_per_clk_sm=factor))
        return {each.config["q_in_registers"] for each in choice.tied}

    assert keeps(1.0) == {0} and keeps(0.8) == {0, 1} and keeps(0.5) == keeps(0.35) == {1}


def test_slower_wgmma_takes_the_kernel_that_does_without() -> None:
    assert (
        choose(altered(wgmma_n128_bf16_flops_per_clk_sm=0.3), problem(), only="smscope").pick.variant
        == "sm80/forward/software_pipelined"
    )


def test_noise_within_the_constants_intervals_moves_no_pick() -> None:
    for constant in ("wgmma_n128_bf16_flops_per_clk_sm", "mufu_ex2_per_clk_sm", "smem_bandwidth_bytes_per_clk_sm"):
        assert ours(altered(**{constant: 1.001})).pick.config == ours(H100).pick.config


def test_a_head_dim_is_corrected_as_the_one_that_it_is_padded_to() -> None:
    profile = H100  # whose timings are of today's kernel
    efficiencies = learned.of_machine(profile)
    found = choose(profile, problem(128), efficiencies=efficiencies).candidates
    pick = next(each for each in found if each.prediction is not None and each.prediction.efficiency.near)
    wide, narrow = (efficiencies.nearest(by_path(OURS), pick.config, problem(width)) for width in (128, 120))
    assert pick.variant == OURS and wide is not None and wide.timings
    assert wide == narrow


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"scale": 2.0**-61}, "softmax scales from"),
        ({"scale": 1e30}, "softmax scales from"),
        ({"scale": 0.0}, "positive softmax scale"),
        ({"softcap": 1025.0}, "softcaps from"),
        ({"softcap": 1e-30}, "softcaps from"),
    ],
    ids=str,
)
def test_a_scale_or_a_cap_that_float32_does_not_bear_is_refused(changes: dict[str, float], said: str) -> None:
    assert said in {each.variant: each.reason for each in choose(H100, replace(problem(), **changes)).refused}[OURS]
    assert all(choose(H100, replace(problem(), **fine)).pick.variant == OURS for fine in ({"softcap": 1024.0}, {}))


@pytest.mark.parametrize("hidden", [{"causal": True}, {"window": (5, 5)}, {"mask": "bool"}], ids=str)
def test_no_kernel_of_torchs_hides_keys_under_a_scale_that_is_not_positive(hidden: dict[str, Any]) -> None:
    assert not by_path(choose(H100, replace(problem(), scale=-1.0, **hidden)).pick.variant).fused


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dims", [(192, 128), (128, 64), (40, 40), (72, 72), (112, 112), (160, 160)])
def test_our_kernel_is_picked_between_head_dims_and_for_value_dims_unlike(dims: tuple[int, int], causal: bool) -> None:
    asked = replace(problem(dims[0], causal=causal), head_dim_v=dims[1])
    choice = choose(H100, asked, efficiencies=learned.of_machine(H100))
    assert (choice.pick.variant, choice.fallback) == (OURS, None)


def test_padding_less_makes_a_narrow_head_faster() -> None:
    narrow, wide = (choose(H100, problem(width), only="smscope").pick.prediction for width in (80, 96))
    assert narrow is not None and wide is not None
    assert narrow.seconds < 0.97 * wide.seconds
