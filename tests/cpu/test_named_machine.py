"""Which machine a name means that somebody typed, and what is said of one that nobody measured."""

from pathlib import Path

import pytest

from attention import AttentionProblem, Explanation, explain
from attention.choose.machine import named_machine
from microbench.errors import UnknownGpu
from microbench.published.boards import known
from microbench.published.names import matching
from microbench.results.profile import Profile
from tests.cpu.attention_profiles import hopper_profile, host_profile, saved

PROBLEM = AttentionProblem(1, 32, 8, 4096, 4096, 128, dtype="bfloat16", causal=True)
A100S = ("a100-sxm4-40gb", "a100-sxm4-80gb", "a100-pcie-40gb", "a100-pcie-80gb")


def called(gpu: str, sm_count: int = 132) -> Profile:
    return hopper_profile().model_copy(update={"gpu": gpu, "name": gpu, "sm_count": sm_count})


@pytest.mark.parametrize(
    ("asked", "arch", "slugs"),
    [
        ("a100", "sm80", A100S),
        ("A100 80", "sm80", (A100S[1], A100S[3])),
        ("a100-sxm-80gb", "sm80", A100S[1:2]),
        ("NVIDIA A100-SXM4-80GB", "sm80", A100S[1:2]),
        ("Tesla T4", "sm75", ("t4",)),
        ("rtx4090", "sm89", ("rtx-4090",)),
        ("4090", "sm89", ("rtx-4090",)),
        ("l4", "sm89", ("l4",)),  # no L40
        ("l40", "sm89", ("l40",)),
        ("H100 PCIe", "sm90a", ("h100-pcie-80gb",)),
        ("h200-sxm-141gb", "sm90a", ("h200-sxm",)),
        ("b200", "sm100a", ("b200-sxm",)),
        ("gb200", "sm100a", ("gb200",)),
        ("TITAN V", "sm70", ("titan-v",)),
        ("RTX PRO 6000", "sm120a", ("rtx-pro-6000-blackwell",)),
        ("rtxpro6000", "sm120a", ("rtx-pro-6000-blackwell",)),
        ("2080 ti", "sm75", ("rtx-2080-ti",)),
        ("sm89", "sm89", ()),
        ("sm_90", "sm90a", ()),
        ("7.5", "sm75", ()),
        ("Hopper", "sm90a", ()),
    ],
)
def test_a_name_finds_its_boards_or_its_architecture(asked: str, arch: str, slugs: tuple[str, ...]) -> None:
    found = known(asked)
    assert (found.arch, tuple(board.slug for board in found.boards)) == (arch, slugs)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("Quadro RTX 6000", "is known; near it is rtx-pro-6000-blackwell"),  # Turing's
        ("rtx-6000", "is known; near it is rtx-pro-6000-blackwell"),
        ("6000", "is known; near it is rtx-pro-6000-blackwell"),
        ("rtx 2080", "is known; near it is rtx-2080-ti"),
        ("l5", "near it is l4"),
        ("a10", "near it is a40"),
        ("ampere", "may be sm80 or sm86; name one"),
        ("rtx", "may be rtx-2070, "),
        ("100", "No GPU called '100' is known"),
        ("", "No GPU called '' is known"),
        ("host", "No GPU called 'host' is known"),
        ("mi300x", "An architecture's name, such as sm89, will do too"),
    ],
)
def test_a_name_that_is_none_or_several_lists_what_is_near(asked: str, said: str) -> None:
    with pytest.raises(UnknownGpu) as error:
        known(asked)
    assert said in str(error.value)


def test_the_nearest_kind_of_match_wins_and_no_number_is_cut() -> None:
    named = [("l40",), ("l40s",), ("rtx-4090",), ("rtx-4090-ti",)]
    assert matching("l40", named) == ("l40",) and matching("l40-", named) == ("l40",)
    assert matching("L40S", named) == ("l40s",)
    assert matching("l4", named) == matching("409", named) == matching("", named) == ()
    assert matching("4090", named) == ("rtx-4090", "rtx-4090-ti") and matching("rtx 4090", named) == ("rtx-4090",)


def test_every_board_is_found_by_its_slug_and_by_its_name() -> None:
    from microbench.published import load

    for gpu in load().gpus:
        if gpu.slug:
            assert gpu.slug in {board.slug for board in known(gpu.slug).boards}
            assert gpu.slug in {board.slug for board in known(gpu.name).boards}


def test_what_a_document_does_not_say_is_not_decided_by() -> None:
    by_slug = {board.slug: board for board in known("a100").boards}
    assert "sm_count" in by_slug["a100-pcie-80gb"].recalled
    assert known("a100").sm_count == 108 and known("a100-pcie-80gb").sm_count is None
    assert known("h100").sm_count is None  # 132 or 114


def test_published_values_are_in_our_units_and_of_these_boards_alone() -> None:
    rows = {row.constant: row for row in known("a100-sxm4-40gb").reported}
    assert rows["ffma_per_clk_sm"].high == 64
    assert (rows["mma_bf16_latency_cycles"].unit, rows["mma_bf16_latency_cycles"].low) == ("cycles", 24.6)
    every, forty = (
        {row.constant: row for row in known(asked).reported}["dram_bandwidth_bytes_per_s"]
        for asked in ("a100", "a100 40")
    )
    assert 1e12 < forty.high < 1.6e12 < every.high < 2.1e12


def test_a_profile_is_found_by_its_name_before_any_board(data: Path) -> None:
    saved(data, called("h100-sxm-80gb"), host_profile())
    exact = named_machine("h100-sxm-80gb")
    assert (exact.profile.gpu, exact.caution, exact.known) == ("h100-sxm-80gb", None, None)
    near = named_machine("H100")
    assert (near.profile.gpu, near.known) == ("h100-sxm-80gb", None)
    assert near.caution == "no profile is called 'H100', so the nearest name, h100-sxm-80gb, is taken"
    assert named_machine("host-test-4c").profile.gpu == "host-test-4c"


def test_of_two_profiles_neither_is_guessed(data: Path) -> None:
    saved(data, called("h100-sxm-80gb"), called("h100-pcie-80gb", 114))
    with pytest.raises(UnknownGpu, match="may be h100-pcie-80gb or h100-sxm-80gb; name one"):
        named_machine("h100")
    assert named_machine("h100 pcie").profile.sm_count == 114


def test_a_board_without_a_profile_is_judged_as_a_gpu_of_that_kind_would_be(data: Path) -> None:
    saved(data, called("h100-sxm-80gb"))
    found = named_machine("h100-pcie")
    assert found.profile.gpu == "h100-sxm-80gb"
    assert found.caution is not None and "'h100-pcie' (H100 PCIe 80GB) has no profile" in found.caution
    assert found.known is not None and found.known.sm_count == 114
    empty = named_machine("a100-sxm4-80gb").profile
    assert (empty.gpu, empty.arch, empty.sm_count, empty.constants) == ("a100-sxm4-80gb", "sm80", 108, ())


def test_where_a_gpu_of_the_architecture_was_measured_no_published_profile_stands_beside_it(data: Path) -> None:
    assert named_machine("a100").published is not None
    saved(data, called("a30-pcie-24gb", 56).model_copy(update={"arch": "sm80"}))
    found = named_machine("a100")
    assert found.profile.gpu == "a30-pcie-24gb" and found.published is None


def test_an_unknown_name_also_says_which_profiles_there_are(data: Path) -> None:
    saved(data, called("h100-sxm-80gb"))
    with pytest.raises(UnknownGpu, match="Profiles: h100-sxm-80gb"):
        named_machine("no-such-gpu")


def test_the_explanation_says_what_is_known_and_what_could_run(data: Path) -> None:
    found = explain(PROBLEM, gpu="a100")
    text = str(found)
    for said in (
        "'a100' (A100 SXM4 40GB, A100 SXM4 80GB, A100 PCIe 40GB or A100 PCIe 80GB) has no profile",
        "none of sm80 is shipped",
        "No pick rests on published constants",
        "By published constants of a100 (A100 SXM4 80GB)",
        "Ampere, compute capability 8.0; each SM gives at most 64 FP32 results and 2048 FLOP",
        "164 KiB of shared memory (163 for a block)",
        "1.94 TB/s*",
        "smscope has not measured it, and no choice uses it",
        "sm80/forward/torch_flash",
        "runs on sm90a, not on sm80",
    ):
        assert said in " ".join(text.split())
    assert Explanation.from_json(found.to_json()) == found


def test_a_gpu_that_is_of_no_kind_is_said_to_have_no_prediction(data: Path) -> None:
    text = " ".join(str(explain(PROBLEM, gpu="rtx-3090")).split())
    assert "No time can be predicted" in text and "By published constants" not in text


def test_a_measured_gpu_has_no_such_part(data: Path) -> None:
    saved(data, called("h100-sxm-80gb"))
    found = explain(PROBLEM, gpu="h100-sxm-80gb")
    assert found.known is None and "vendor's numbers" not in str(found)
