"""What was timed, as a line of data/attention."""

import statistics
from datetime import UTC, datetime

from attention.compare.bound import bound_seconds
from attention.compare.cells import Cell
from attention.oracle.reference import Comparison
from attention.tile import FETCH_BYTES
from attention.timed.timing import Pass, Timing
from attention.variant import Config
from microbench.machine import stamp
from microbench.machine.arch import Machine
from microbench.measure.timed import Timed


def new_run() -> str:
    """The id of what is timed in one process: its start, to the second."""
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")


def row(
    machine: Machine,
    cell: Cell,
    name: str,
    timed: Timed,
    error: Comparison,
    *,
    run: str,
    captured: bool | None = None,
    packages: dict[str, str],
    threads: int = 1,
    passes: Pass = "forward",
    config: Config | None = None,
    cubin_sha256: str | None = None,
    source_sha256: str = "",
    picked: bool = False,
    predicted_seconds: float | None = None,
) -> Timing:
    """One candidate of one cell, with the conditions it was timed under and what a GPU could do at best."""
    problem, alone = cell.problem, timed.sustained
    low, middle, high = statistics.quantiles(timed.seconds, n=4, method="inclusive")
    sizes = (problem.batch, problem.heads_q, problem.heads_kv, problem.seq_q, problem.seq_kv)
    joules = alone.joules if alone else None
    return Timing(
        gpu=machine.gpu,
        measured_utc=datetime.now(UTC).isoformat(timespec="seconds"),
        shape=(*sizes, problem.head_dim, problem.head_dim_v),
        dtype=problem.dtype,
        causal=problem.causal,
        window=problem.window,
        lengths=cell.lengths,
        passes=passes,
        variant=name,
        config=dict(config.values) if config else {},
        seconds=middle,
        low=low,
        high=high,
        n=len(timed.seconds),
        clock_mhz=round(timed.clock_mhz, 1),
        flags=timed.flags,
        bound_seconds=bound_seconds(machine, problem, passes),
        sustained_seconds=alone.seconds if alone else None,
        sustained_clock_mhz=round(alone.clock_mhz, 1) if alone else None,
        joules=joules,
        power_w=round(joules / alone.seconds, 1) if alone and joules else None,
        predicted_seconds=predicted_seconds,
        error=error.error,
        allowed_error=error.allowed,
        threads=threads,
        cubin_sha256=cubin_sha256,
        source_sha256=source_sha256,
        run=run,
        grid=cell.grid,
        picked=picked,
        captured=captured,
        l2_read=timed.l2_read,
        fetch_bytes=FETCH_BYTES,
        packages=packages,
        commit=stamp.commit().sha,
        dirty=stamp.commit().dirty,
    )
