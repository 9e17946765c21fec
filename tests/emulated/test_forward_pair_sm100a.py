"""The sm100a forward by pairs of blocks, executed: right in every mode, with every feature, and without a race."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attention.kernels.launch.machine import standing_in
from attention.problem import AttentionProblem
from attention.variant import Config, by_path
from attention.verify.emulated import Emulated
from microbench.emulator import MODES, EmulatedDevice, Mode
from tests.emulated.forward_case import ForwardCase
from tests.emulated.forward_launch import Kernel
from tests.emulated.forward_sm100a import PATH, config_of, run
from tests.emulated.forward_tests import CAPPED, MANY, MASKED, SOME, Forward, ForwardTests, cases


def pair_of(tile_keys: int = 64, polynomial: int = 0) -> Config:
    """A point of the variant's space where two blocks work together."""
    return config_of(tile_keys, polynomial=polynomial, dynamic=0, cta_group=2)


# A pair has 512 rows of a tile at head dims up to 128, else 256. Rows end in the block that issues or in the other one;
# 20 keys are less than the half that one block has.
WIDTHS = {
    64: (ForwardCase(seq_q=600, seq_kv=130, head_dim=64, heads_q=1, dtype="float16"), pair_of(128, 8)),
    128: (ForwardCase(seq_q=301, seq_kv=333, head_dim=128), pair_of(128, 4)),
    120: (ForwardCase(seq_q=257, seq_kv=20, head_dim=120, heads_q=1, dtype="float16", memory="bshd"), pair_of(128)),
    192: (ForwardCase(seq_q=300, seq_kv=140, head_dim=192, heads_q=1), pair_of(128)),
    256: (ForwardCase(seq_q=200, seq_kv=170, head_dim=256, heads_q=2), pair_of(128)),
    # Held at 64: the other block has the last 16 columns, and 16 that nobody asked for.
    "64 and 48": (ForwardCase(seq_q=300, seq_kv=130, head_dim=64, head_dim_v=48, heads_q=1), pair_of(128)),
    "192 and 128": (ForwardCase(seq_q=270, seq_kv=300, head_dim=192, head_dim_v=128, heads_q=1), pair_of(128)),
}
# Rows of both blocks, whose bands differ.
BOTH = replace(SOME, batch=1, heads_q=2, heads_kv=1, seq_q=290)
PACKED = replace(MANY, lengths=((300, 300), (1, 133), (0, 5), (5, 0), (270, 64), (65, 150)))
FEATURES = {
    "causal": replace(BOTH, right=0),
    "causal from the bottom right": replace(BOTH, right=0, aligned="bottom_right"),
    "rows that see nothing": replace(BOTH, right=-270),
    "a window": replace(BOTH, left=-40, right=20),
    "a window far ahead": replace(BOTH, left=100, right=180),
    "maxima that grow": replace(BOTH, spread=12.0),
    "maxima that grow past 2^128": replace(BOTH, spread=100.0),
    "ALiBi and sinks": replace(BOTH, alibi="heads", sinks=True),
    "a mask": replace(BOTH, mask="full"),
    "two batches": replace(BOTH, batch=2),
    "packed sequences": PACKED,
    "packed and causal from the bottom right": replace(PACKED, right=0, aligned="bottom_right"),
    "packed, and rows of no sequence behind": replace(PACKED, spare=70, lengths=((300, 30), (280, 100))),
}
RANGED = replace(BOTH, batch=2, ranges=((270, BOTH.seq_kv, 40), (150, 70, 5)), right=0, aligned="bottom_right")
BIASED = replace(BOTH, mask="bias", dtype="float16")
FORWARD = Forward(run, Kernel(PATH, pair_of(), MASKED), Kernel(PATH, pair_of(polynomial=4), CAPPED))


@pytest.mark.parametrize("blocks", [2, 4, 6])
@pytest.mark.parametrize("mode", MODES)
def test_pairs_share_out_tiles_of_rows(mode: Mode, blocks: int) -> None:
    case = ForwardCase(batch=2, heads_q=2, seq_q=290, seq_kv=70, head_dim=64)
    assert not FORWARD.why_wrong(mode, case, blocks=blocks)


@settings(max_examples=10, deadline=None)
@given(case=cases(), mode=st.sampled_from(MODES), pairs=st.integers(1, 3))
def test_random_problems_are_right(case: ForwardCase, mode: Mode, pairs: int) -> None:
    """With rows for the block that does not issue: more than 256."""
    more = tuple((queries and queries + 200, keys) for queries, keys in case.lengths)
    assert not FORWARD.why_wrong(mode, replace(case, seq_q=case.seq_q + 200, lengths=more), blocks=2 * pairs)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", [RANGED, BIASED], ids=["a part of each slot", "a float mask"])
def test_a_pair_does_what_takes_a_build_of_its_own(case: ForwardCase, mode: Mode) -> None:
    kernel = Kernel(PATH, pair_of(), case.problem)
    assert not Forward(run, kernel, kernel).why_wrong(mode, case)


def test_the_launcher_gives_pairs_an_even_number_of_sms() -> None:
    problem = AttentionProblem(2, 2, 1, 600, 70, 64, dtype="bfloat16", device="cuda")
    rng = torch.Generator().manual_seed(0)
    query, key, value = (
        torch.randn(2, heads, length, 64, generator=rng).bfloat16() for heads, length in ((2, 600), (1, 70), (1, 70))
    )
    machine = Emulated(EmulatedDevice(), sm_count=5)
    with standing_in("cpu", machine):
        out, lse = by_path(PATH).load()(query, key, value, problem, pair_of())
    scores = query.double() @ key.double().mT / 8
    assert torch.allclose(lse.double(), scores.logsumexp(-1), atol=1e-5)
    assert torch.allclose(out.double(), scores.softmax(-1) @ value.double(), atol=2e-2)


class TestPair(ForwardTests):
    forward, widths, features = FORWARD, WIDTHS, FEATURES
