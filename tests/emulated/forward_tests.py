"""What the forward kernels of all architectures are asked alike; a file's subclass says how its own is run."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pytest
from hypothesis import strategies as st

from attention.variant import Config
from microbench.emulator import MODES, EmulatedDevice, Mode
from microbench.machine.cpu import cores
from tests.emulated.forward_case import ForwardCase, Outputs, along_one, inputs_of, judge
from tests.emulated.forward_launch import Kernel

# Two builds serve all features: what a case does not ask for is given a neutral value.
EVERY = ForwardCase(seq_q=512, seq_kv=512, left=0, right=0, alibi="heads", sinks=True)
MASKED, CAPPED = replace(EVERY, mask="full").problem, replace(EVERY, softcap=1.0, lengths=((512, 512),)).problem

SOME = ForwardCase(batch=2, heads_q=4, heads_kv=2, seq_q=140, seq_kv=203)
SEQUENCES = ((100, 100), (1, 133), (0, 5), (5, 0), (140, 64), (65, 150))
MANY = ForwardCase(heads_q=2, lengths=SEQUENCES, softcap=30.0)
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


# Head dims between those that kernels are tuned at, and value dims that are unlike.
BETWEEN: tuple[tuple[int, int], ...] = (
    *((dim, dim) for dim in (16, 24, 40, 80, 112, 144, 160, 176, 208, 240)),
    *((192, 128), (64, 256), (128, 64), (120, 128), (16, 240)),
)


def between(dims: tuple[int, int]) -> ForwardCase:
    """Two tiles of rows, the second one cut short, and three of keys or more."""
    return ForwardCase(seq_q=150, seq_kv=200, head_dim=dims[0], head_dim_v=dims[1], heads_q=1, right=20)


def halved(case: ForwardCase) -> ForwardCase:
    """The same in float16, all that Volta and Turing multiply."""
    return replace(case, dtype="float16")


HALVED = {name: halved(case) for name, case in FEATURES.items()}


@dataclass(frozen=True)
class Forward:
    """A kernel, and its two builds with features for head dims up to 64."""

    run: Callable[..., Outputs]
    featured: Kernel
    packed: Kernel

    def why_wrong(self, mode: Mode, case: ForwardCase, kernel: Kernel | None = None, **schedule: int) -> str:
        """What is wrong with the outputs, by a build with features if none is given; empty where nothing is."""
        inputs, device = inputs_of(case), EmulatedDevice(mode, case.seed + 1)
        kernel = kernel or (self.packed if case.lengths else self.featured)
        return judge(case, inputs, self.run(device, case, kernel, inputs=inputs, **schedule))


@dataclass(frozen=True)
class Parted:
    """Cases of a kernel that deals keys in parts: by builds whose heads share rows, and those of a mask by head."""

    cases: Mapping[str, ForwardCase]
    shared: Forward
    by_head: Forward

    def why_wrong(self, mode: Mode, name: str, key_splits: int) -> str:
        """Empty where nothing is."""
        forward = self.by_head if self.cases[name].mask else self.shared
        return forward.why_wrong(mode, self.cases[name], key_splits=key_splits)


class PartedTests:
    """What every such kernel is asked of each case."""

    parted: Parted

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        metafunc.parametrize("name", list(self.parted.cases))

    @pytest.mark.slow
    @pytest.mark.timeout(600)
    def test_any_number_of_parts_is_right_in_every_mode(self, name: str) -> None:
        for mode in MODES:
            for key_splits in (1, 2, 5, 16, 64):
                assert not self.parted.why_wrong(mode, name, key_splits)


class ForwardTests:
    """`widths` are cases of two tiles of rows, the second one cut short, and of three of keys or more."""

    forward: Forward
    dtype: Literal["bfloat16", "float16"] = "bfloat16"
    widths: dict[int | str, tuple[ForwardCase, Config]]
    features: dict[str, ForwardCase]
    others: tuple[Kernel, ...] = ()

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        for name, values in (("mode", MODES), ("width", self.widths), ("feature", self.features)):
            if name in metafunc.fixturenames:
                metafunc.parametrize(name, list(values))

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def _built(cls, emulator: None) -> None:
        """All of these builds, in as many compilers as there are cores."""
        device, widths = EmulatedDevice(), (cls.of_width(*each) for each in cls.widths.values())
        with ThreadPoolExecutor(len(cores())) as pool:
            kernels = (cls.forward.featured, cls.forward.packed, *cls.others, *widths)
            for done in [pool.submit(kernel.load, device) for kernel in kernels]:
                done.result()

    @classmethod
    def of_width(cls, case: ForwardCase, config: Config) -> Kernel:
        return replace(cls.forward.featured, config=config, problem=case.problem)

    def test_each_head_dim_is_right_in_every_mode(self, width: int | str, mode: Mode) -> None:
        case, config = self.widths[width]
        assert not self.forward.why_wrong(mode, case, self.of_width(case, config))

    def test_each_feature_is_right(self, feature: str) -> None:
        assert not self.forward.why_wrong("lazy", self.features[feature])

    @pytest.mark.parametrize("lengths", [SEQUENCES, ((100, 30), (70, 64))])
    def test_rows_of_no_sequence_are_neither_read_nor_written(self, lengths: tuple[tuple[int, int], ...]) -> None:
        assert not self.forward.why_wrong("lazy", replace(MANY, dtype=self.dtype, spare=70, lengths=lengths))


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
        spread=draw(st.sampled_from([1.0, 10.0, 60.0])),
        seed=draw(st.integers(0, 1 << 20)),
    )


class HalfTests(ForwardTests):
    """What Volta and Turing are asked beside: `slow_widths` are configurations, each in every mode."""

    dtype: Literal["bfloat16", "float16"] = "float16"
    features = HALVED
    slow_widths: dict[str, tuple[ForwardCase, Config]]

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        super().pytest_generate_tests(metafunc)
        if "slow_width" in metafunc.fixturenames:
            metafunc.parametrize("slow_width", list(self.slow_widths))

    @pytest.mark.slow
    def test_each_configuration_is_right_in_every_mode(self, slow_width: str, mode: Mode) -> None:
        case, config = self.slow_widths[slow_width]
        for spread in (1.0, 30.0):
            wanted = halved(replace(case, spread=spread))
            assert not self.forward.why_wrong(mode, wanted, self.of_width(wanted, config))

    @pytest.mark.parametrize("band", BANDS)
    def test_each_band_is_right(self, band: str) -> None:
        assert not self.forward.why_wrong("lazy", halved(BANDS[band]))

    @pytest.mark.parametrize("power", [-4, 8, 12, 24])
    def test_rows_with_and_without_huge_scores_stand_side_by_side(self, power: int) -> None:
        case, rng = (
            replace(SOME, batch=1, heads_q=1, heads_kv=1, dtype="float16", scaled=2.0**power),
            np.random.default_rng(4 + power),
        )
        q = np.where(np.arange(case.seq_q) % 3 == 0, 2.0**12, 1.0)
        inputs = along_one(case, q, rng.integers(-8, 9, case.seq_kv) * 1.0)
        assert not judge(
            case, inputs, self.forward.run(EmulatedDevice("lazy"), case, self.forward.featured, inputs=inputs)
        )
