"""The stall probe without a GPU: which instructions it patches, and what it concludes from right and wrong results."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from microbench import sass
from microbench.compile import compile_probe
from microbench.device.cuda_kernel import CudaKernel
from microbench.device.protocol import Kernel
from microbench.errors import DeviceError
from microbench.machine.arch import CUDA, Machine, by_name
from microbench.measure.cuda import CudaBench
from microbench.measure.launch import Launch
from microbench.point import Point
from microbench.probe import SassContract
from microbench.probes import named
from microbench.probes.issue import fixed_latency
from microbench.sass.latency import static_latencies

PROBE = named("fixed_latency")
OPERATIONS = tuple(fixed_latency.OPERATIONS)


class Loader:
    """Of a CUDA device what patching needs: a load that only remembers."""

    def __init__(self) -> None:
        self.cupy = None
        self.machine = Machine("fake", "Fake", by_name("sm90a"), 4, None, None, 1, None)

    def load(self, cubin: Any) -> CudaKernel:
        return CudaKernel(cubin, None)


def point(operation: str) -> Point:
    return Point((("operation", operation),))


def compiled(operation: str, arch: str) -> Kernel:
    (build,) = fixed_latency.builds(point(operation))
    cubin = compile_probe(PROBE, build, by_name(arch))
    return Kernel(cubin, cubin)


@pytest.mark.parametrize("arch", CUDA)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_patching_lowers_every_wait_of_the_chain_and_no_other(operation: str, arch: str) -> None:
    (build,) = fixed_latency.builds(point(operation))
    kernel = compiled(operation, arch)
    places = sass.stalls(build.contract, kernel.cubin.instructions())
    assert len(places) == fixed_latency.CHAIN - 1 and {stall for _, stall in places} == {4}
    bench = CudaBench(Loader(), PROBE, "nvrtc", quick=True)  # type: ignore[arg-type]
    patched = bench.patched(kernel, [(index, 3) for index, _ in places]).cubin
    assert patched.path.read_bytes() == patched.image and patched.sha256 != kernel.cubin.sha256
    numbers = {index for index, _ in places}
    before, after = kernel.cubin.instructions(), patched.instructions()
    for number, (old, new) in enumerate(zip(before, after, strict=True)):
        assert new == old if number not in numbers else new.control == replace(old.control, stall=3)
    assert {wait.cycles for wait in static_latencies([after[index] for index in sorted(numbers)])} == {3}
    (violation,) = sass.check(build.contract, after, by_name(arch), patched.resources)
    assert "stalls 3 cycles where ptxas leaves 4" in violation


def test_the_smallest_stall_is_the_last_right_one_on_the_way_down() -> None:
    assert fixed_latency.smallest_right(4, lambda stall: stall >= 4) == 4
    assert fixed_latency.smallest_right(4, lambda stall: stall >= 2) == 2
    assert fixed_latency.smallest_right(4, lambda stall: True) == 1
    assert fixed_latency.smallest_right(4, lambda stall: stall != 3) == 4
    assert fixed_latency.smallest_right(4, lambda stall: False) == 0


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_stale_operand_shows_in_every_lane(operation: str) -> None:
    """A read that comes one operation too early takes the value before last: half of the chain is lost."""
    x, a, b = fixed_latency.operands(operation)

    def step(value: Any) -> Any:
        return {"FFMA": lambda: value * a + b, "FADD": lambda: value + a, "IMAD": lambda: value * a + b}[operation]()

    def chained(late: int) -> Any:
        values = [x] * late
        for _ in range(fixed_latency.CHAIN):
            values.append(step(values[-late]))
        return values[-1]

    assert np.isfinite(chained(1)).all()
    for late in (2, 3, 4):
        assert (chained(late) != chained(1)).all()


class FakeBench:
    """A GPU on which a stall below `needs` gives wrong results; `noisy` ones differ from launch to launch."""

    def __init__(self, needs: int, noisy: bool = False) -> None:
        self.machine = Machine("fake", "Fake", by_name("sm90a"), 4, None, None, 1, None)
        self.needs, self.noisy, self.launches = needs, noisy, 0

    def kernels(self, _: Point) -> tuple[Kernel, ...]:
        return (replace(compiled("FFMA", "sm90a"), function=4),)

    def array(self, values: Any) -> Any:
        class Array:
            content = values

            def get(self) -> Any:
                return self.content.copy()

        return Array()

    def clocks(self, _: Launch) -> None:
        return None

    def stalls(self, kernel: Kernel, contract: SassContract) -> Any:
        return sass.stalls(contract, kernel.cubin.instructions())

    def patched(self, kernel: Kernel, stalls: Any) -> Kernel:
        return replace(kernel, function=stalls[0][1])

    def launch(self, launch: Launch, *_: Any) -> None:
        self.launches += 1
        right = launch.kernel.function >= self.needs
        launch.args[1].content = np.full(128, 7 if right else 8, np.uint32) + (self.launches % 2 if self.noisy else 0)


@pytest.mark.parametrize("needs", [1, 2, 3, 4])
def test_the_probe_finds_what_the_hardware_needs(needs: int) -> None:
    (sample,) = fixed_latency.run(FakeBench(needs), point("FFMA"))  # type: ignore[arg-type]
    assert (sample.metric, sample.value, sample.low, sample.high) == ("latency_cycles", needs, needs, needs)


def test_results_that_differ_from_launch_to_launch_are_no_latency() -> None:
    with pytest.raises(DeviceError, match="differently from launch to launch"):
        fixed_latency.run(FakeBench(4, noisy=True), point("FFMA"))  # type: ignore[arg-type]
