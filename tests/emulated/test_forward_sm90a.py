"""The attention forward of sm90a, executed: right in every mode, with every feature, and without a race."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attention.kernels.common.family import HEAD_DIMS
from attention.kernels.sm90a.forward.warp_specialised.variant import VARIANT
from attention.variant import Config
from attention.verify.build_matrix import legal
from microbench.emulator import MODES, Mode
from microbench.machine.arch import by_name
from tests.emulated.forward_case import ForwardCase
from tests.emulated.forward_launch import Kernel
from tests.emulated.forward_sm90a import PATH, config_of, run
from tests.emulated.forward_tests import BANDS, CAPPED, FEATURES, MASKED, Forward, ForwardTests, cases

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
FORWARD = Forward(run, Kernel(PATH, config_of(64), MASKED), Kernel(PATH, config_of(64, q_in_registers=1), CAPPED))
FEATURED, PACKED, why_wrong = FORWARD.featured, FORWARD.packed, FORWARD.why_wrong


class TestForward(ForwardTests):
    forward, widths, features = FORWARD, WIDTHS, BANDS | FEATURES


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("feature", ["a window", "packed and causal"])
def test_skipped_tiles_are_right_in_every_mode(feature: str, mode: Mode) -> None:
    assert not why_wrong(mode, (BANDS | FEATURES)[feature], blocks=1)


@settings(max_examples=20, deadline=None)
@given(case=cases(), mode=st.sampled_from(MODES), blocks=st.integers(1, 3), section=st.integers(1, 3))
def test_random_problems_are_right(case: ForwardCase, mode: Mode, blocks: int, section: int) -> None:
    assert not why_wrong(mode, case, blocks=blocks, section=section)


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
        assert not why_wrong(mode, case, Kernel(PATH, config, case.problem))
