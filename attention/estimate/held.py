"""The static estimate held against timings: the sm80 kernel on an H200, every plain problem whose SM clock is known.

    ratio = measured / estimated seconds, at the clock that was measured

The file has a line a configuration and problem. Its largest and least ratio are the interval of every estimate, also of
one for a GPU that nobody here has: no better is known of it.
"""

import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from attention.errors import ProblemError
from attention.estimate.blocks import served
from attention.estimate.predicted import Estimate, estimate, rates_of
from attention.problem import AttentionProblem
from attention.timed import cubins, timings
from attention.timed.timing import Timing
from attention.variant import Config, by_path
from microbench import files, paths
from microbench.files import Frozen

GPU, VARIANT = "h200-sxm-141gb", "sm80/forward/software_pipelined"
FILE = "verification/static_estimate.jsonl"
AGAIN = "`python -m attention estimate --write` makes it anew"
LEAST_QUERIES = 1024  # fewer leave SMs without blocks, and the launch weighs


class Held(Frozen):
    """One configuration of one problem: what was measured, in `timings` runs, and what the estimate says."""

    schema_version: int = 1
    gpu: str
    variant: str
    shape: tuple[int, int, int, int, int, int, int]
    dtype: str
    causal: bool
    config: dict[str, int]
    timings: int
    clock_mhz: float
    measured_seconds: float
    estimated_seconds: float
    bound: str

    @property
    def ratio(self) -> float:
        """Measured over estimated seconds."""
        return self.measured_seconds / self.estimated_seconds

    @property
    def error(self) -> float:
        """Of the estimate, as a share of what was measured."""
        return self.estimated_seconds / self.measured_seconds - 1

    @property
    def speed(self) -> float:
        """Measured FLOP an SM clock: what is left to tell apart when lengths and the clock are taken out."""
        return self._per_clock(self.measured_seconds)

    @property
    def estimated_speed(self) -> float:
        """The same of the estimate."""
        return self._per_clock(self.estimated_seconds)

    def _per_clock(self, seconds: float) -> float:
        flops = AttentionProblem(*self.shape, dtype=self.dtype, device="cuda", causal=self.causal).flops
        return flops / seconds / (self.clock_mhz * 1e6)


@dataclass(frozen=True)
class Interval:
    """What may be true where an estimate says `seconds`, by the widest misses of those that were held against a GPU."""

    low_seconds: float
    high_seconds: float
    low_flops_per_s: float
    high_flops_per_s: float
    held: int


def interval(of: Estimate) -> Interval:
    """The interval of an estimate. Raises DataError where the file cannot be read."""
    ratios = [row.ratio for row in read()]
    least, most = min(ratios), max(ratios)
    return Interval(of.seconds * least, of.seconds * most, of.flops_per_s / most, of.flops_per_s / least, len(ratios))


def read() -> tuple[Held, ...]:
    """The rows on file. Raises DataError."""
    return files.read(paths.SHIPPED / FILE, Held, AGAIN)


def cases() -> Iterator[tuple[Timing, ...]]:
    """Timings of this tree's cubins on plain problems, by configuration and problem; the clock is known of each."""
    ours = cubins.current(by_path(VARIANT))
    found: dict[tuple[str, str], list[Timing]] = {}
    for row in timings.read(GPU)[0]:
        if row.variant == VARIANT and row.clock_mhz and row.cubin_sha256 in ours and _plain(row.problem):
            found.setdefault((str(row.problem), str(row.config)), []).append(row)
    yield from (tuple(rows) for _, rows in sorted(found.items()))


def held(rows: tuple[Timing, ...]) -> Held:
    """One case, estimated at the median of the clocks that were measured."""
    first, variant = rows[0], by_path(VARIANT)
    clock_mhz = statistics.median(row.clock_mhz or 0.0 for row in rows)
    cycles = statistics.median(row.seconds * (row.clock_mhz or 0.0) for row in rows)
    found = estimate(variant, first.problem, Config(tuple(first.config.items())), rates_of(GPU).at(clock_mhz * 1e6))
    return Held(
        gpu=GPU,
        variant=VARIANT,
        shape=first.shape,
        dtype=first.dtype,
        causal=first.causal,
        config=first.config,
        timings=len(rows),
        clock_mhz=clock_mhz,
        measured_seconds=_figure(cycles / clock_mhz),
        estimated_seconds=_figure(found.seconds),
        bound=found.bound,
    )


def write(rows: Iterable[Held]) -> None:
    """The file, whole. Raises OSError."""
    files.put(paths.writable_data() / FILE, files.text(rows))


def _plain(problem: AttentionProblem) -> bool:
    try:
        served(problem)
    except ProblemError:
        return False
    return problem.seq_q == problem.seq_kv >= LEAST_QUERIES


def _figure(value: float) -> float:
    return float(f"{value:.6g}")
