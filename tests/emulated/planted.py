"""Kernels with planted bugs: right in every mode and order of events, and each bug is found as it should be."""

import re
from typing import Any, ClassVar, Literal

import numpy as np
import pytest

from microbench.compile import Defines, compile_source
from microbench.emulator import MODES, EmulatedDevice, Mode
from microbench.errors import DeviceError
from microbench.verify.blind.found import bug_numbers
from microbench.verify.differential.attention_case import Floats
from tests.emulated.sources import source_of

Outcome = Literal["report", "result", "missed"]
Variant = dict[str, Any]


def _label(value: Any) -> str:
    return "-".join(f"{name}={each}" for name, each in value.items()) if isinstance(value, dict) else str(value)


class Planted:
    """The tests of one kernel; a file's subclass says how it runs and what is right.

    Variants are keyword arguments of `case`, `run` and `defines`. A case is any object with what is `expected`.
    """

    name: str  # of the kernel
    file = ""  # its stem, where it has another name
    archs: tuple[str, ...]
    opcodes: frozenset[str]  # the beginnings of some that each build holds
    bugs: ClassVar[dict[str, str]]  # what each is reported as; '' where only the result shows it: no rule is broken
    missed: frozenset[tuple[str, Mode]] = frozenset()
    variants: tuple[Variant, ...] = ({},)
    random: tuple[Variant, ...] = ({},)  # those that run in orders drawn at random
    seeds = 8
    tolerance = 0.0

    def case(self, seed: int = 0, **variant: Any) -> Any:
        raise NotImplementedError

    def run(self, device: EmulatedDevice, case: Any, bug: int = 0, **variant: Any) -> Floats:
        raise NotImplementedError

    def defines(self, **variant: Any) -> Defines:
        return ()

    def with_bug(self, bug: str) -> Variant:
        """The variant that has the bug."""
        return {}

    @property
    def source(self) -> tuple[str, str]:
        """(text, file name)."""
        return source_of(f"{self.file or self.name}.cu")

    def load(self, device: EmulatedDevice, **variant: Any) -> Any:
        return device.load(*self.source, kernel=self.name, defines=self.defines(**variant))

    def ends(self, bug: str, mode: Mode, races: bool = True) -> tuple[Outcome, str]:
        """How a bug is noticed in a mode, and what the emulator says."""
        variant, number = self.with_bug(bug), bug_numbers(self.source[0])[bug]
        case = self.case(**variant)
        try:
            found = self.run(EmulatedDevice(mode, races=races), case, number, **variant)
        except DeviceError as error:
            return "report", str(error)
        wrong = not np.isfinite(found).all() or bool((np.abs(found - case.expected) > self.tolerance).any())
        return ("result" if wrong else "missed"), ""

    def require(self, device: EmulatedDevice, seed: int = 0, **variant: Any) -> None:
        case = self.case(seed, **variant)
        np.testing.assert_allclose(self.run(device, case, **variant), case.expected, rtol=0, atol=self.tolerance)

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        values = {"variant": self.variants, "seed": range(self.seeds), "arch": self.archs, "bug": self.bugs}
        values |= {"mode": MODES}
        for name in (each for each in metafunc.fixturenames if each in values):
            metafunc.parametrize(name, list(values[name]), ids=_label)

    def test_it_is_right_in_every_mode(self, mode: Mode, variant: Variant) -> None:
        for races in (True, False):
            self.require(EmulatedDevice(mode, races=races), **variant)

    def test_no_order_of_events_makes_a_false_report(self, seed: int) -> None:
        for variant in self.random:
            self.require(EmulatedDevice("random", seed), seed, **variant)

    def test_the_same_source_compiles_for_its_gpu(self, arch: str, variant: Variant) -> None:
        cubin = compile_source(*self.source, arch, self.defines(**variant), kernel=self.name)
        found = {instruction.opcode for instruction in cubin.instructions()}
        assert all(any(opcode.startswith(wanted) for opcode in found) for wanted in self.opcodes), sorted(found)
        assert cubin.resources.spill_store_bytes == 0

    def test_every_planted_bug_is_listed(self) -> None:
        assert set(bug_numbers(self.source[0])) - {"NONE"} == set(self.bugs)

    def test_a_planted_bug_is_found(self, bug: str, mode: Mode) -> None:
        how, said = self.ends(bug, mode)
        assert how == ("missed" if (bug, mode) in self.missed else "report" if self.bugs[bug] else "result"), said
        assert how == "missed" or re.search(self.bugs[bug], said), said
