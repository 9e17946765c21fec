"""Runs as a DataFrame, for analysis: a row a record, with what its machine was beside it."""

import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from microbench import paths
from microbench.errors import DataError, DataWarning
from microbench.results.record import Run, read_all, run_files

if TYPE_CHECKING:
    import pandas as pd

# Of the environment, what machines and their runs are grouped by.
ENVIRONMENT = ("driver", "uuid_sha256", "sm_count", "clock_hz", "power_limit_w", "nvrtc", "started_utc")


def frame(runs: Sequence[Run]) -> "pd.DataFrame":
    """One row per record, the point's axes as columns `point.<axis>`.

    gpu      the slug of its kind, and `board` the first 8 digits of its UUID's hash: two boards of a kind differ
    values   of a map, a tuple (of tuples); the column is there where a row has one
    """
    import pandas as pd

    found = []
    for run in runs:
        told = run.environment
        machine = {name: getattr(told, name) for name in ENVIRONMENT}
        first = {"gpu": told.gpu, "board": told.board, "quick": told.quick}
        for record in run.records:
            row = record.model_dump(exclude={"kind", "point", "values"})
            if record.values is not None:
                row["values"] = record.values
            found.append({**first, **row, **{f"point.{axis}": at for axis, at in record.point.items()}, **machine})
    return pd.DataFrame(found)


def load_runs(gpu: str | None = None, probe: str | Iterable[str] | None = None) -> "pd.DataFrame":
    """Every record of every run (of one GPU, of one probe or of some) as a DataFrame; `frame` says its columns.

    Only what is asked for is read. Unreadable lines are warned of, by file and line. Raises UnknownGpu where no run is
    of `gpu`, DataError where nothing is measured at all, or nothing of these probes.
    """
    if not run_files():
        raise DataError(f"Nothing is measured yet; type `{paths.typed('bench')}`{paths.runs_elsewhere()}.")
    wanted = None if probe is None else {probe} if isinstance(probe, str) else set(probe)
    runs, problems = read_all(gpu, wanted)
    for problem in problems:
        warnings.warn(problem, DataWarning, stacklevel=2)
    if wanted is not None and not any(run.records for run in runs):
        where = f"run of {gpu}" if gpu else "run"
        raise DataError(f"No {where} holds a row of {', '.join(sorted(wanted))}; `smscope list` names the probes.")
    return frame(runs)
