"""The attention forward of sm90a, executed: right in every mode, with every feature, and without a race."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attention.builds import legal
from attention.cuda.family import HEAD_DIMS
from attention.kernels.sm90a.forward.warp_specialised.variant import VARIANT
from attention.variant import Config
from microbench.emulator import MODES, EmulatedDevice, Mode
from microbench.machine.arch import by_name
from microbench.machine.cpu import cores
from tests.emulated.forward_case import ForwardCase, inputs_of, judge
from tests.emulated.forward_sm90a import Kernel, config_of, run

# Two tiles of rows, the second one cut short, and three of keys or more; a block works on several.
WIDTHS = {
    64: (ForwardCase(seq_q=333, seq_kv=300, head_dim=64, heads_q=2, right=0), config_of(112, 3, q_in_registers=1)),
    128: (ForwardCase(seq_q=200, seq_kv=333, head_dim=128), config_of(128, q_in_registers=1)),
    80: (
        ForwardCase(seq_q=150, seq_kv=200, head_dim=80, dtype="float16", memory="bshd"),
        config_of(80, q_in_registers=1),
    ),
    192: (ForwardCase(seq_q=130, seq_kv=170, head_dim=192, heads_q=1), config_of(64)),
    256: (ForwardCase(seq_q=130, seq_kv=170, head_dim=256, heads_q=1, dtype="float16"), config_of(64)),
}
# Two builds serve all features: what a case does not ask for is given a neutral value.
EVERY = ForwardCase(seq_q=512, seq_kv=512, left=0, right=0, alibi="heads", sinks=True)
FEATURED = Kernel(config_of(64), replace(EVERY, mask="full").problem)
PACKED = Kernel(config_of(64, q_in_registers=1), replace(EVERY, softcap=1.0, lengths=((512, 512),)).problem)

SOME = ForwardCase(batch=2, heads_q=4, heads_kv=2, seq_q=140, seq_kv=203)
SEQUENCES = ((100, 100), (1, 133), (0, 5), (5, 0), (140, 64), (65, 150))
MANY = ForwardCase(heads_q=2, lengths=SEQUENCES, softcap=30.0)
FEATURES = {
    "causal": replace(SOME, right=0),
    "causal from the bottom right": replace(SOME, right=0, aligned="bottom_right"),
    "rows that see nothing": replace(SOME, right=-70),
    "a window": replace(SOME, left=-40, right=20),
    "a window behind": replace(SOME, left=-40),
    "a window far ahead": replace(SOME, left=100, right=180),
    "ALiBi": replace(SOME, alibi="heads"),
    "ALiBi of every batch": replace(SOME, alibi="batch"),
    "sinks": replace(SOME, sinks=True),
    "sinks and nothing else": replace(SOME, sinks=True, right=-70),
    "a mask": replace(SOME, mask="full"),
    "a mask of keys": replace(SOME, mask="keys", right=0),
    "one head for all": replace(SOME, heads_kv=1),
    "(B, S, H, D) in memory": replace(SOME, memory="bshd"),
    "maxima that grow": replace(SOME, spread=12.0),
    "softcap": replace(MANY, softcap=2.0, spread=4.0),
    "packed sequences": MANY,
    "packed and causal": replace(MANY, right=0, memory="bshd"),
    "packed and causal from the bottom right": replace(MANY, right=0, aligned="bottom_right"),
    "packed and a window": replace(MANY, left=-30, right=30, aligned="bottom_right", sinks=True, alibi="batch"),
}


def why_wrong(mode: Mode, case: ForwardCase, kernel: Kernel, blocks: int = 2, section: int = 2) -> str:
    """What is wrong with the kernel's outputs; empty where nothing is. Raises DeviceError where it is stopped."""
    inputs = inputs_of(case)
    device = EmulatedDevice(mode, case.seed + 1)
    return judge(case, inputs, run(device, case, kernel, blocks=blocks, section=section, inputs=inputs))


def featured(case: ForwardCase) -> Kernel:
    """The build for a case of head dim up to 64."""
    return PACKED if case.lengths else FEATURED


@pytest.fixture(scope="module", autouse=True)
def _built(emulator: None) -> Iterator[None]:
    """All of this module's builds, in as many compilers as there are cores."""
    device = EmulatedDevice()
    with ThreadPoolExecutor(len(cores())) as pool:
        kernels = (FEATURED, PACKED, *(Kernel(config, case.problem) for case, config in WIDTHS.values()))
        for done in [pool.submit(kernel.load, device) for kernel in kernels]:
            done.result()
    yield


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("width", WIDTHS)
def test_each_head_dim_is_right_in_every_mode(width: int, mode: Mode) -> None:
    case, config = WIDTHS[width]
    assert not why_wrong(mode, case, Kernel(config, case.problem))


@pytest.mark.parametrize("feature", FEATURES)
def test_each_feature_is_right(feature: str) -> None:
    case = FEATURES[feature]
    assert not why_wrong("lazy", case, featured(case))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("feature", ["a window", "packed and causal"])
def test_skipped_tiles_are_right_in_every_mode(feature: str, mode: Mode) -> None:
    case = FEATURES[feature]
    assert not why_wrong(mode, case, featured(case), blocks=1)


def test_rows_of_no_sequence_are_not_written() -> None:
    assert not why_wrong("lazy", replace(MANY, spare=70, lengths=((100, 30), (70, 64))), PACKED)


def test_nan_behind_the_last_sequence_stays_outside() -> None:
    assert not why_wrong("lazy", replace(MANY, spare=70), PACKED)


@st.composite
def cases(draw: st.DrawFn) -> ForwardCase:
    """Up to three tiles of rows and five of keys, with any features of either build."""
    length = st.integers(1, 200)
    packed = draw(st.booleans())
    edge = st.none() | st.integers(-150, 150)
    left, right = draw(edge), draw(edge)
    if left is not None and right is not None and left > right:
        left, right = right, left
    kv = draw(st.sampled_from([1, 2]))
    some = st.tuples(st.integers(0, 150), st.integers(0, 200))
    lengths = draw(st.lists(some, min_size=1, max_size=4)) if packed else []
    if packed and (not sum(q for q, _ in lengths) or not sum(k for _, k in lengths)):
        lengths.append((1, 1))
    return ForwardCase(
        *(draw(st.integers(1, 2)), kv * draw(st.sampled_from([1, 3])), kv, draw(length), draw(length)),
        head_dim=draw(st.sampled_from([8, 40, 56, 64])),
        left=left,
        right=right,
        aligned=draw(st.sampled_from(["top_left", "bottom_right"])),
        softcap=draw(st.sampled_from([1.0, 20.0])) if packed else 0.0,
        alibi=draw(st.sampled_from(["", "heads", "batch"])),
        sinks=draw(st.booleans()),
        mask="" if packed else draw(st.sampled_from(["", "full", "keys"])),
        lengths=tuple(lengths),
        memory=draw(st.sampled_from(["bhsd", "bshd"])),
        spread=draw(st.sampled_from([1.0, 10.0])),
        seed=draw(st.integers(0, 1 << 20)),
    )


@settings(max_examples=20, deadline=None)
@given(case=cases(), mode=st.sampled_from(MODES), blocks=st.integers(1, 3), section=st.integers(1, 3))
def test_random_problems_are_right(case: ForwardCase, mode: Mode, blocks: int, section: int) -> None:
    assert not why_wrong(mode, case, featured(case), blocks, section)


# Lengths at and about the edges of tiles, after the tests of FlashAttention; reduced to what takes a second here.
LENGTHS = ((1, 1), (64, 128), (128, 192), (239, 1), (199, 3), (255, 256), (256, 255), (113, 203), (3, 339), (300, 177))


def legal_cases() -> Iterator[Any]:
    """(case, config): for each legal configuration of each head dim a bare problem, and one with features."""
    arch = by_name("sm90a")
    for head_dim in HEAD_DIMS:
        for number, config in enumerate(VARIANT.configs()):
            rng = np.random.default_rng((head_dim, number))
            for kind in ("bare", "featured"):
                case = _drawn(rng, head_dim, kind == "bare")
                if config in legal(VARIANT, case.problem, arch):
                    yield pytest.param(case, config, id=f"d={head_dim} {config} {kind}")


def _drawn(rng: np.random.Generator, head_dim: int, bare: bool) -> ForwardCase:
    def some(chance: float) -> bool:
        return bool(rng.random() < chance and not bare)

    (rows, keys), packed = LENGTHS[rng.integers(len(LENGTHS))], some(0.3)
    return ForwardCase(
        *(1, 2, int(rng.integers(1, 3)), max(rows, 129), keys),  # three warpgroups are legal from 129 rows on
        head_dim=head_dim - 8 * int(rng.integers(4)),
        dtype="float16" if rng.random() < 0.5 else "bfloat16",
        left=int(rng.integers(-100, 40)) if some(0.4) else None,
        right=int(rng.integers(40, 100)) if some(0.3) else 0 if rng.random() < 0.5 else None,
        aligned="bottom_right" if some(0.5) else "top_left",
        softcap=10.0 if some(0.3) else 0.0,
        alibi="batch" if some(0.3) else "",
        sinks=some(0.3),
        mask="full" if some(0.3) and not packed else "",
        lengths=((rows, keys), (130, 70), (0, 9), (9, 0)) if packed else (),
        memory="bshd" if rng.random() < 0.5 else "bhsd",
        spread=4.0,
        seed=int(rng.integers(1 << 20)),
    )


@pytest.mark.slow
@pytest.mark.parametrize(("case", "config"), list(legal_cases()))
def test_every_legal_configuration_is_right_in_every_mode(case: ForwardCase, config: Config) -> None:
    for mode in MODES:
        assert not why_wrong(mode, case, Kernel(config, case.problem))
