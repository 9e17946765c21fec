"""The supervisor of a run. It never makes a GPU context: it asks one worker per campaign, judges, and writes.

run -> lock -> worker (says which GPU it is) -> run file, new or resumed -> compile ahead -> campaigns -> Finished

suite.py goes through the campaigns; crew.py has the workers.
"""

import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from microbench import device, files, paths
from microbench.console.progress import say as print_line
from microbench.errors import DataError
from microbench.results import record
from microbench.results.record import Environment, Run
from microbench.run import environment, lock, plan
from microbench.run.crew import Crew
from microbench.run.options import Options
from microbench.run.plan import Plan
from microbench.run.suite import MAX_BREAKAGES, Suite

__all__ = ["MAX_BREAKAGES", "Options", "Outcome", "run", "unfinished"]


@dataclass(frozen=True)
class Outcome:
    run: Run
    kept: int  # records that an interrupted run had left

    @property
    def retried(self) -> int:
        """How many campaigns were added because constants were in doubt."""
        planned = self.run.environment.campaigns
        return len({row.campaign for row in self.run.records if row.campaign >= planned})

    @property
    def statuses(self) -> dict[str, int]:
        return dict(Counter(record.status for record in self.run.records))

    @property
    def measured(self) -> bool:
        return any(row.measured for row in self.run.records)

    @property
    def unsupported(self) -> bool:
        """True where nothing was tried, because this machine has nothing that the probes ask for: no file is kept."""
        return all(record.status == "unsupported" for record in self.run.records)


def run(options: Options) -> Outcome:
    """Measure, from the beginning or from where the last run on this device was interrupted.

    An interrupted run's failures without a number are tried again: the machine may have been at fault, not the probe.

    Raises BusyError, DataError, DeviceError, EnvironmentLacks; KeyboardInterrupt once what was measured is safe.
    """
    device.require_measuring(options.device)
    started = time.perf_counter()
    with (
        lock.hold(options.device, options.wait, print_line),
        closing(Crew(options.device, options.quick, options.folders)) as crew,
    ):
        hello = crew.worker(more=options.campaigns > 1).hello
        wanted = environment.describe(
            hello, options.quick, options.only, options.campaigns, options.folders, options.chosen
        )
        found = None if options.fresh else unfinished(wanted)
        path = found.path if found else _new_file(wanted)
        told = found.environment if found else wanted
        planned = Plan(told.run_id, options.chosen, hello.machine, options.campaigns, options.quick)
        done = plan.done(found) if found else set()
        Suite(options, path, told, planned, crew, started).go(done)
    outcome = Outcome(record.read(path), sum(plan.key_of(row) in done for row in found.records) if found else 0)
    if outcome.unsupported:
        path.unlink(missing_ok=True)
    return outcome


def unfinished(wanted: Environment) -> Run | None:
    """The newest run like `wanted`, where it was interrupted; None where it came to its end, or there is none."""
    folder = paths.writable_data() / "runs" / wanted.gpu
    for file in sorted(folder.glob("*.jsonl"), reverse=True):
        try:
            candidate = record.read(file)
        except DataError:
            continue
        if environment.same(candidate.environment, wanted):
            return None if candidate.finished else candidate
    return None


def _new_file(wanted: Environment) -> Path:
    path = paths.writable_data() / "runs" / wanted.gpu / f"{wanted.run_id}.jsonl"
    files.append(path, wanted)
    return path
