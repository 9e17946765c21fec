"""The attention forward of sm80, executed: right in every mode, with every feature, and without a race."""

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attention.variant import Config
from microbench.compile import HEADERS, compile_source
from microbench.emulator import MODES, EmulatedDevice, Mode
from microbench.machine.cpu import cores
from tests.emulated.forward_case import ForwardCase, inputs_of, judge
from tests.emulated.forward_sm80 import INCLUDE, SOURCE, Kernel, config_of, run

CROWDED = Config((("warps", 4), ("tile_keys", 32)))  # all else as the launcher chooses

# Two tiles of rows, the second one cut short, and three of keys or more.
WIDTHS = {
    64: (ForwardCase(seq_q=200, seq_kv=300, head_dim=64, right=0), config_of(64, 32)),
    128: (ForwardCase(seq_q=200, seq_kv=333, head_dim=128), config_of(32, 32, q_in_registers=0)),
}
SLOW_WIDTHS = {
    "d64, slices of 16": (ForwardCase(seq_q=200, seq_kv=300, head_dim=64), config_of(64, 16, ahead=3)),
    "d64, 16 rows a warp": (ForwardCase(seq_q=200, seq_kv=300, head_dim=64, right=0), config_of(64, 32, warp_rows=16)),
    "d64, one slice a tile": (ForwardCase(seq_q=150, seq_kv=300, head_dim=64), config_of(64, 64)),
    "d80 in 96": (ForwardCase(seq_q=150, seq_kv=200, head_dim=80, dtype="float16", memory="bshd"), config_of(64, 32)),
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
# Two builds serve all features: what a case does not ask for is given a neutral value.
EVERY = ForwardCase(seq_q=512, seq_kv=512, left=0, right=0, alibi="heads", sinks=True)
FEATURED = Kernel(config_of(64, 32), replace(EVERY, mask="full").problem)
PACKED = Kernel(config_of(64, 32), replace(EVERY, softcap=1.0, lengths=((512, 512),)).problem)
# Keys on both sides, and no mask, so that slices take the way without a maximum.
BAND = Kernel(config_of(64, 32), ForwardCase(seq_q=512, seq_kv=512, left=0, right=0).problem)
HALF = Kernel(config_of(64, 32), ForwardCase(seq_q=512, seq_kv=512, dtype="float16").problem)

SOME = ForwardCase(batch=2, heads_q=4, heads_kv=2, seq_q=140, seq_kv=203)
SEQUENCES = ((100, 100), (1, 133), (0, 5), (5, 0), (140, 64), (65, 150))
MANY = ForwardCase(heads_q=2, lengths=SEQUENCES, softcap=30.0)
FEATURES = {
    "ALiBi": replace(SOME, alibi="heads"),
    "ALiBi of every batch": replace(SOME, alibi="batch"),
    "sinks": replace(SOME, sinks=True),
    "sinks and nothing else": replace(SOME, sinks=True, right=-70),
    "a mask": replace(SOME, mask="full"),
    "a mask of keys": replace(SOME, mask="keys", right=0),
    "one head for all": replace(SOME, heads_kv=1),
    "softcap": replace(MANY, softcap=2.0, spread=4.0),
    "packed sequences": MANY,
    "packed and causal": replace(MANY, right=0, memory="bshd"),
    "packed and causal from the bottom right": replace(MANY, right=0, aligned="bottom_right"),
    "packed and a window": replace(MANY, left=-30, right=30, aligned="bottom_right", sinks=True, alibi="batch"),
}
BANDS = {
    "causal": replace(SOME, right=0),
    "causal from the bottom right": replace(SOME, right=0, aligned="bottom_right"),
    "rows that see nothing": replace(SOME, right=-70),
    "rows that see nothing of the tile before": replace(SOME, right=63),
    "a window": replace(SOME, left=-40, right=20),
    "a window behind": replace(SOME, left=-40),
    "a window far ahead": replace(SOME, left=100, right=180),
    "(B, S, H, D) in memory": replace(SOME, memory="bshd"),
    "one query and one key": replace(SOME, seq_q=1, seq_kv=1),
    "one query": replace(SOME, seq_q=1),
    "maxima that grow": replace(SOME, spread=12.0),
    "maxima that grow past 2^128": replace(SOME, spread=100.0),
}


def why_wrong(mode: Mode, case: ForwardCase, kernel: Kernel, section: int = 2) -> str:
    """What is wrong with the kernel's outputs; empty where nothing is. Raises DeviceError with its report."""
    inputs = inputs_of(case)
    device = EmulatedDevice(mode, case.seed + 1)
    return judge(case, inputs, run(device, case, kernel, section=section, inputs=inputs))


def featured(case: ForwardCase) -> Kernel:
    """The build for a case of head dim up to 64."""
    return PACKED if case.lengths else FEATURED


@pytest.fixture(scope="module", autouse=True)
def _built(emulator: None) -> Iterator[None]:
    """This module's fast builds, in as many compilers as there are cores."""
    device = EmulatedDevice()
    with ThreadPoolExecutor(len(cores())) as pool:
        kernels = (FEATURED, PACKED, BAND, HALF, *(Kernel(config, case.problem) for case, config in WIDTHS.values()))
        for done in [pool.submit(kernel.load, device) for kernel in kernels]:
            done.result()
    yield


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("width", WIDTHS)
def test_each_head_dim_is_right_in_every_mode(width: int, mode: Mode) -> None:
    case, config = WIDTHS[width]
    assert not why_wrong(mode, case, Kernel(config, case.problem))


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("which", SLOW_WIDTHS)
def test_each_configuration_is_right_in_every_mode(which: str, mode: Mode) -> None:
    case, config = SLOW_WIDTHS[which]
    for spread in (1.0, 30.0):
        assert not why_wrong(mode, replace(case, spread=spread), Kernel(config, case.problem))


@pytest.mark.parametrize("feature", FEATURES)
def test_each_feature_is_right(feature: str) -> None:
    case = FEATURES[feature]
    assert not why_wrong("lazy", case, featured(case))


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


def test_rows_of_no_sequence_are_neither_read_nor_written() -> None:
    case = replace(MANY, heads_q=1, spare=70)
    assert not why_wrong("lazy", case, PACKED)


@st.composite
def cases(draw: st.DrawFn) -> ForwardCase:
    """Up to two tiles of rows and four of keys, with any band."""
    length, edge = st.integers(1, 200), st.none() | st.integers(-150, 150)
    left, right = draw(edge), draw(edge)
    if left is not None and right is not None and left > right:
        left, right = right, left
    kv = draw(st.sampled_from([1, 2]))
    return ForwardCase(
        *(draw(st.integers(1, 2)), kv * draw(st.sampled_from([1, 3])), kv, draw(length), draw(length)),
        head_dim=draw(st.sampled_from([8, 40, 56, 64])),
        left=left,
        right=right,
        aligned=draw(st.sampled_from(["top_left", "bottom_right"])),
        memory=draw(st.sampled_from(["bhsd", "bshd"])),
        spread=draw(st.sampled_from([1.0, 10.0, 60.0])),
        seed=draw(st.integers(0, 1 << 20)),
    )


@settings(max_examples=30, deadline=None)
@given(case=cases(), mode=st.sampled_from(MODES), section=st.integers(1, 3))
def test_random_problems_are_right(case: ForwardCase, mode: Mode, section: int) -> None:
    assert not why_wrong(mode, case, BAND, section)


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
    kernel = Kernel(config, ForwardCase(seq_q=512, seq_kv=512, head_dim=head_dim).problem)
    include = (HEADERS, *INCLUDE)
    cubin = compile_source(
        SOURCE, "kernel.cu", arch, tuple(kernel.defines.items()), include, kernel="attention_forward_sm80"
    )
    opcodes = {instruction.opcode.split(".")[0] for instruction in cubin.instructions()}
    assert {"HMMA", "LDSM", "LDGSTS"} <= opcodes
    assert cubin.resources.spill_store_bytes == 0
