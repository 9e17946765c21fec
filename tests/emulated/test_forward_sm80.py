"""The attention forward of sm80, executed: right in every mode, with every feature, and without a race."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attention.kernels.launch.source import sources_of
from attention.variant import Config, by_path
from microbench.compile import Cubin, compile_all
from microbench.emulator import MODES, EmulatedDevice, Mode
from microbench.machine.arch import by_name
from tests.emulated.forward_case import ForwardCase, inputs_of, judge
from tests.emulated.forward_launch import Kernel
from tests.emulated.forward_sm80 import PATH, config_of, run
from tests.emulated.forward_tests import (
    BANDS,
    BETWEEN,
    CAPPED,
    FEATURES,
    MASKED,
    SOME,
    Forward,
    ForwardTests,
    between,
    cases,
)

CROWDED = Config((("warps", 4), ("tile_keys", 32)))  # all else as the launcher chooses

# Two tiles of rows, the second one cut short, and three of keys or more.
WIDTHS = {
    64: (ForwardCase(seq_q=200, seq_kv=300, head_dim=64, right=0), config_of(64, 32)),
    128: (ForwardCase(seq_q=200, seq_kv=333, head_dim=128), config_of(32, 32, q_in_registers=0)),
    80: (ForwardCase(seq_q=200, seq_kv=200, head_dim=72, heads_q=1, right=0), CROWDED),
    "64 and 80": (ForwardCase(seq_q=150, seq_kv=200, head_dim=56, head_dim_v=80, heads_q=1), config_of(32, 16)),
}
SLOW_WIDTHS = {
    "d64, slices of 16": (ForwardCase(seq_q=200, seq_kv=300, head_dim=64), config_of(64, 16, ahead=3)),
    "d64, 16 rows a warp": (ForwardCase(seq_q=200, seq_kv=300, head_dim=64, right=0), config_of(64, 32, warp_rows=16)),
    "d64, one slice a tile": (ForwardCase(seq_q=150, seq_kv=300, head_dim=64), config_of(64, 64)),
    "d80": (ForwardCase(seq_q=150, seq_kv=200, head_dim=80, dtype="float16", memory="bshd"), config_of(64, 32)),
    "d96 causal": (ForwardCase(seq_q=150, seq_kv=150, head_dim=96, right=0), config_of(48, 16)),
    "d128, Q in registers": (ForwardCase(seq_q=200, seq_kv=333, head_dim=128, right=30), config_of(32, 16)),
    "d128, eight warps": (
        ForwardCase(seq_q=300, seq_kv=333, head_dim=128, dtype="float16"),
        config_of(64, 32, warps=8, q_in_registers=0),
    ),
    "d192": (
        ForwardCase(seq_q=130, seq_kv=170, head_dim=192, heads_q=1, right=0),
        config_of(64, 16, warps=8, warp_rows=16),
    ),
    "d256": (
        ForwardCase(seq_q=130, seq_kv=170, head_dim=256, heads_q=1, dtype="float16"),
        config_of(32, 16, warps=8, warp_rows=16, ahead=3, fence=1),
    ),
    "d256, crowded": (
        ForwardCase(seq_q=130, seq_kv=170, head_dim=256, heads_q=1, left=-40, right=0, alibi="heads"),
        CROWDED,
    ),
    "d256, crowded, on a small SM": (
        ForwardCase(seq_q=130, seq_kv=100, head_dim=256, heads_q=1, mask="full"),
        replace(CROWDED, values=(("warps", 4), ("tile_keys", 16))),
    ),
    "d128 with a mask": (ForwardCase(seq_q=200, seq_kv=133, head_dim=128, mask="full"), CROWDED),
}

SLOW_WIDTHS |= {f"{d} and {dv}": (between((d, dv)), CROWDED) for d, dv in BETWEEN}
FORWARD = Forward(run, Kernel(PATH, config_of(64, 32), MASKED), Kernel(PATH, config_of(64, 32), CAPPED))
FEATURED, PACKED, why_wrong = FORWARD.featured, FORWARD.packed, FORWARD.why_wrong
# Keys on both sides, and no mask, so that slices take the way without a maximum.
BAND = Kernel(PATH, config_of(64, 32), ForwardCase(seq_q=512, seq_kv=512, left=0, right=0).problem)
HALF = Kernel(PATH, config_of(64, 32), ForwardCase(seq_q=512, seq_kv=512, dtype="float16").problem)


class TestForward(ForwardTests):
    forward, widths, features = FORWARD, WIDTHS, FEATURES
    others = (BAND, HALF)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("which", SLOW_WIDTHS)
def test_each_configuration_is_right_in_every_mode(which: str, mode: Mode) -> None:
    case, config = SLOW_WIDTHS[which]
    for spread in (1.0, 30.0):
        assert not why_wrong(mode, replace(case, spread=spread), Kernel(PATH, config, case.problem))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("band", BANDS)
def test_each_band_is_right_in_every_mode(band: str, mode: Mode) -> None:
    assert not why_wrong(mode, BANDS[band], BAND)


@pytest.mark.parametrize("spread", [1.0, 5.0, 12.0, 40.0, 100.0])
def test_large_p_stay_within_float16(spread: float) -> None:
    for seed in range(4):
        case = replace(SOME, batch=1, seq_kv=400, dtype="float16", spread=spread, seed=seed)
        assert not why_wrong("lazy", case, HALF)


@pytest.mark.parametrize("above", [9, 63, 125, 126, 127, 128, 129, 200])
def test_a_late_score_may_exceed_the_first_ones_by_any_power_of_two(above: int) -> None:
    case = ForwardCase(heads_q=1, seq_q=40, seq_kv=300, head_dim=64)
    drawn = inputs_of(case)
    q, k = (np.zeros(bits.shape, np.float32) for bits in (drawn.q, drawn.k))
    q[..., 0], k[..., 5, 0] = 1, (above + 0.6) * math.log(2) / case.scale  # keys are visited from the last to the first
    inputs = replace(drawn, q=case.bits(q), k=case.bits(k))
    assert not judge(case, inputs, run(EmulatedDevice("lazy"), case, BAND, inputs=inputs))


@settings(max_examples=30, deadline=None)
@given(case=cases(), mode=st.sampled_from(MODES), section=st.integers(1, 3), band=st.booleans())
def test_random_problems_are_right(case: ForwardCase, mode: Mode, section: int, band: bool) -> None:
    if band:  # the build that has no other feature
        case = replace(case, alibi="", sinks=False, mask="", lengths=(), softcap=0.0)
    assert not why_wrong(mode, case, BAND if band else None, section=section)


# The configurations that were fastest on an H100.
FAST: tuple[tuple[int, Config], ...] = (
    (64, config_of(64, 32, blocks=2, ahead=3)),
    (128, config_of(32, 32, blocks=2, q_in_registers=0)),
    (256, config_of(32, 16, warps=8, warp_rows=16, ahead=3, fence=1)),
)


# What the chooser picks is held to the same by tests/compile/test_attention_matrix.py in every run.
@pytest.mark.slow
@pytest.mark.parametrize("arch", ["sm80", "sm86", "sm89", "sm90a"])
@pytest.mark.parametrize(("head_dim", "config"), FAST, ids=lambda value: str(value).replace(" ", ","))
def test_it_compiles_for_every_gpu_it_serves_without_spills(head_dim: int, config: Config, arch: str) -> None:
    problem = ForwardCase(seq_q=512, seq_kv=512, head_dim=head_dim).problem
    (cubin,) = compile_all(list(sources_of(by_path(PATH), problem, config, by_name(arch))))
    assert isinstance(cubin, Cubin), cubin
    assert {"HMMA", "LDSM", "LDGSTS"} <= {instruction.opcode.split(".")[0] for instruction in cubin.instructions()}
    assert cubin.resources.spill_store_bytes == 0
