"""What a probe is: frozen data plus three small functions. Imports no GPU library.

A probe is two files, `probes/<family>/<name>.py` and `<name>.cu`; the stem is its name everywhere. The .py binds PROBE:

    builds(point) -> Builds     which kernels the point needs, each with the SASS contract it must keep
    run(bench, point) -> Sample what to launch and which number comes out
    constants                   how a sweep becomes the constants of a profile
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any, Literal

from microbench.machine.arch import Arch, Machine
from microbench.point import Point, Reducer, Value, Values

# A value may exceed its bound by what the clock's own jitter adds, and no more: a value of 1.05 times it is refused.
BOUND_SLACK = 1.02
REACHED = 0.97


@dataclass(frozen=True)
class Axis:
    """A swept parameter; `quick` is the subset that `--quick` keeps (all of them by default)."""

    name: str
    values: tuple[Value, ...]
    quick: tuple[Value, ...] | None = None


Governor = Literal["power", "host"]
Limit = float | Callable[[Machine, Point], float | None] | None


@dataclass(frozen=True)
class Bound:
    """What physics allows. A limit is a number, a function of machine and point, or None where nobody can know.

    documented    `upper` is a rate that the hardware is documented to give: a value below REACHED of it is the kernel's
                  own limit, and so a lower bound
    """

    why: str
    lower: Limit = None
    upper: Limit = None
    documented: bool = False

    def at(self, machine: Machine, point: Point) -> tuple[float | None, float | None]:
        """(lower, upper) for this machine and point, in the metric's unit."""

        def resolve(limit: Limit) -> float | None:
            return limit(machine, point) if callable(limit) else limit

        return resolve(self.lower), resolve(self.upper)


def breaks(value: float, lower: float | None, upper: float | None) -> bool:
    """True where `value` lies outside the bound by more than the slack (so 1.05 times past it always does)."""
    too_low = lower is not None and value * BOUND_SLACK < lower
    too_high = upper is not None and value > upper * BOUND_SLACK
    return too_low or too_high


UNKNOWN = Bound("unknown")


@dataclass(frozen=True)
class Metric:
    """A measured quantity. The name ends in its unit: latency_cycles, bandwidth_bytes_per_s.

    governed_by     'power' where power sets the SM clock meanwhile, so that it is a part of the result; 'host' where
                    the CPU and the driver take most of the time; None where the SM clock is a condition
    only            the points that give it; every one where this is None
    """

    name: str
    unit: str
    bound: Bound = UNKNOWN
    governed_by: Governor | None = None
    only: Callable[[Point], bool] | None = None


@dataclass(frozen=True)
class OpCount:
    """`count` instructions that nvdisasm prints as `opcode`, with all modifiers; how it rounds (FTZ, RZ) is free.

    also        what else is the same operation: another spelling on Volta, a cache policy that is nothing here
    operands    where it matters the kinds of its operands, in order: 'R gdesc R' (sass.operands.kinds)
    """

    opcode: str
    count: int
    also: tuple[str, ...] = ()
    operands: str = ""


@dataclass(frozen=True)
class Overhead:
    """From `least` to `most` instructions of these opcodes in all; ISETP stands for ISETP.GE.AND as well."""

    opcodes: tuple[str, ...]
    least: int
    most: int


@dataclass(frozen=True)
class SassContract:
    """What must stand between the two clock reads (or in the one timed loop), no more and no less.

    region      'straight': the instructions between two clock reads, no branch; 'loop': the body of the one loop
                that holds `ops` (between the clock reads, where the kernel reads the clock); 'kernel': all of it
    distance    d > 0: each op reads the result of the op d places before it, at first hand or through overhead;
                0: no op reads the result of another one, even so; None: no dependence is declared
    overhead    what else stands there
    clocks      readings of the SM's clock in the whole kernel; 0 where events time it
    closed_by   the opcode of the loop's wait, whose answer the closing branch reads: without that nobody waits
    asked_again the opcode of a wait that is asked again until it has come, in a loop of its own: nothing is left out
    before      pairs of declared opcodes: each operation of the first stands before every one of the second
    beside      the contracts of other warps' loops, which run meanwhile between the same two readings
    """

    ops: tuple[OpCount, ...]
    region: Literal["straight", "loop", "kernel"] = "straight"
    distance: int | None = None
    overhead: tuple[Overhead, ...] = ()
    clocks: Literal[0, 2] = 2
    closed_by: str = ""
    asked_again: str = ""
    before: tuple[tuple[str, str], ...] = ()
    beside: tuple["SassContract", ...] = ()

    @property
    def each(self) -> tuple["SassContract", ...]:
        """This one and those beside it: a kernel keeps every one."""
        return (self, *self.beside)


@dataclass(frozen=True)
class Budget:
    """What a kernel may occupy at most, so that its launch fits the SM as planned; None where nothing is planned."""

    registers: int | None = None  # per thread
    smem_bytes: int | None = None  # static, per block


@dataclass(frozen=True)
class Build:
    """One kernel to compile: NVRTC defines, the contract its SASS must keep, and what it may occupy.

    software_mma    m8n8k4 wanted where no tensor core has it: sm_80 and later run Volta's code by a routine of ptxas
    """

    defines: tuple[tuple[str, int | str], ...]
    contract: SassContract
    kernel: str = ""  # entry point; the probe's stem where empty
    budget: Budget = Budget()
    software_mma: bool = False


@dataclass(frozen=True)
class Twin:
    """The second method's kernel as a Python function, compiled for the same builds and held to the same contracts.

    make        called with a build's defines in lower case, make(chain=32), returns the function. It imports numba and
                compile.numba_ptx inside itself: neither discovery nor a cached cubin needs them. The function may use
                its own file, numba_ptx and those constants, and no other file: the cache's key knows of no other
    signature   the arguments of the CUDA C++ kernel as scalars: addresses int64, counts int32, "void(int64, int32)"
    """

    make: Callable[..., Callable[..., None]]
    signature: str


@dataclass(frozen=True)
class Sample:
    """What one point gave in one campaign: the median of `n` repeats and their spread.

    values      a map instead, a value for each SM or a row of them for each partner; value, low and high sum it up
    """

    metric: str
    value: float
    low: float
    high: float
    n: int
    clock_mhz: float | None = None
    flags: tuple[str, ...] = ()
    values: Values | None = None


@dataclass(frozen=True)
class Constant:
    """A number that a profile keeps: one metric of the probe, reduced over its points."""

    name: str
    metric: str
    reduce: Reducer
    method: str = ""  # '' is the primary method
    unit: str = ""  # the metric's own where empty; a knee is in the axis' unit
    quick: bool = True  # False where the points of a quick run do not give it


@dataclass(frozen=True)
class Probe:
    """One question to a machine. `name`, `family` and `source` are filled in from where the file lies."""

    asks: str
    archs: tuple[str, ...]
    metrics: tuple[Metric, ...]
    run: Callable[[Any, Point], list[Sample]]
    axes: tuple[Axis, ...] = ()
    builds: Callable[[Point], tuple[Build, ...]] | None = None
    constants: tuple[Constant, ...] = ()
    twin: Twin | None = None  # the Numba CUDA kernel of the second method
    skip: Callable[[Machine, Point], str | None] | None = None  # the reason why a point cannot run here
    campaigns: int | None = None  # how many of a run's have it, the first ones; all of them where this is None
    time_limit_s: float = 60.0
    # The begin of a run's id. Runs before it measured something else by the same machine code (other launches, other
    # memory), and do not stand together with later ones.
    since: str = ""
    name: str = ""
    family: str = ""
    source: Path = field(default=Path())

    def found_at(self, path: Path) -> "Probe":
        """The probe with its identity taken from its file: stem, folder, and the .cu beside it."""
        return replace(self, name=path.stem, family=path.parent.name, source=path.with_suffix(".cu"))

    @property
    def file(self) -> Path:
        return self.source.parent / f"{self.name}.py"

    def runs_on(self, arch: Arch) -> bool:
        """True where the architecture is one the probe declares."""
        return arch.name in self.archs

    def points(self, quick: bool = False) -> Iterator[Point]:
        names = [axis.name for axis in self.axes]
        values = [axis.quick if quick and axis.quick is not None else axis.values for axis in self.axes]
        for combination in product(*values):
            yield Point(tuple(zip(names, combination, strict=True)))

    def metrics_at(self, point: Point) -> tuple[Metric, ...]:
        """What this point gives."""
        return tuple(metric for metric in self.metrics if metric.only is None or metric.only(point))

    def metric(self, name: str) -> Metric:
        """The declared metric called `name`; KeyError where the probe measures something it did not declare."""
        for metric in self.metrics:
            if metric.name == name:
                return metric
        raise KeyError(f"{self.name} declares no metric {name!r}")

    @property
    def methods(self) -> tuple[str, ...]:
        """'host' on a CPU; 'nvrtc', and 'numba' where a twin exists, on a GPU."""
        if self.archs == ("host",):
            return ("host",)
        return ("nvrtc", "numba") if self.twin else ("nvrtc",)
