"""The rule by which a kernel reads which of its tiles spill."""

from dataclasses import replace
from pathlib import Path

import pytest

from attention.kernels.common.spills import NAME, Spills, spills_of, text
from attention.problem import AttentionProblem
from attention.variant import CudaBuild, shipped

OURS = [variant for variant in shipped() if (variant.folder / NAME).is_file()]
BY_COMPANY = {"": 176, "CAUSAL": 160, "CAUSAL SOFTCAP": 96, "CAUSAL SOFTCAP VARLEN": 112, "ALIBI": 80}
SPILLS = Spills(
    *("12.9.86", ("sm90a",), ("HEAD_DIM", "Q_IN_REGISTERS"), frozenset({"SINKS"})),
    {(64, 1): {frozenset(names.split()): most for names, most in BY_COMPANY.items()}},
)


def asking(**fields: object) -> AttentionProblem:
    return AttentionProblem(1, 2, 2, 4096, 4096, 64, dtype="bfloat16", device="cuda", **fields)


@pytest.mark.parametrize(
    ("fields", "most"),
    [
        ({}, 176),
        ({"causal": True}, 160),
        ({"causal": True, "sinks": True}, 160),  # free in any company
        ({"causal": True, "softcap": 30.0, "varlen": True}, 112),  # three hold more than two of them
        ({"softcap": 30.0}, 80),  # nobody compiled it alone: the least of all
        ({"window": (10, -1)}, 80),  # nobody knows it
        ({"causal": True, "alibi": True}, 80),  # nobody compiled them together
    ],
)
def test_a_company_has_its_own_limit_or_the_least_of_all(fields, most) -> None:
    assert SPILLS.most(asking(**fields), 64, 1) == most
    assert SPILLS.most(asking(**fields), 64, 0) == 0  # no shape of this kernel


def test_a_value_dim_unlike_the_head_dim_is_a_company_that_nobody_compiled() -> None:
    unlike = AttentionProblem(1, 2, 2, 4096, 4096, 64, 128, dtype="bfloat16", device="cuda")
    assert SPILLS.most(unlike, 64, 1) == min(BY_COMPANY.values()) < SPILLS.most(asking(), 64, 1)
    assert SPILLS.most(unlike, 64, 1, unlike_alone=True) == BY_COMPANY[""]
    softened = replace(unlike, causal=True, softcap=30.0)
    assert SPILLS.most(softened, 64, 1, unlike_alone=True) == min(BY_COMPANY.values())


def test_a_refusal_names_the_build() -> None:
    said = SPILLS.said(asking(causal=True, softcap=30.0), 96, 64, 1)
    assert said == "spills registers beyond 96 keys with head dim 64, q in registers 1, causal, softcap"
    said = SPILLS.said(asking(window=(10, -1)), 80, 64, 1)
    assert said.startswith("may spill registers beyond 80 keys with ") and said.endswith(", which nobody has compiled")


@pytest.mark.parametrize("variant", OURS, ids=lambda variant: variant.path)
def test_the_file_beside_a_kernel_is_as_it_is_written(variant) -> None:
    known = spills_of(variant.folder)
    assert (variant.folder / NAME).read_text() == text(known)
    assert known.nvrtc and set(known.archs) <= set(variant.archs)


def test_few_keys_may_spill_few_bytes_where_the_file_says_so() -> None:
    few = replace(SPILLS, few_keys=64, few_bytes=32)
    allowed = [few.allowed_bytes(CudaBuild("k", (("TILE_KEYS", keys),), 384, 0)) for keys in (48, 64, 80)]
    assert allowed == [32, 32, 0]
    assert SPILLS.allowed_bytes(CudaBuild("k", (("TILE_KEYS", 48),), 384, 0)) == 0


def test_what_may_be_spilled_is_kept_in_the_file(tmp_path: Path) -> None:
    for known in (SPILLS, replace(SPILLS, few_keys=64, few_bytes=32)):
        folder = tmp_path / str(known.few_keys)
        folder.mkdir()
        (folder / NAME).write_text(text(known))
        assert text(spills_of(folder)) == text(known)
