"""A run in progress: campaign by campaign, probe by probe, and each row on disk before the next point is judged.

On a GPU the points of a probe go to the worker in one message, and their answers come back one by one. On a CPU they go
one at a time, so that the supervisor rests while the worker measures the cores that both have.

A worker that hangs or dies costs the one point it was at: the row is `failed` with the reason, a fresh worker goes on.
"""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

from microbench import files
from microbench.console import si
from microbench.console.progress import Watcher, watching
from microbench.console.progress import say as print_line
from microbench.errors import sentence
from microbench.machine.arch import Machine
from microbench.probe import Probe
from microbench.results import record
from microbench.results.record import Environment, Finished, Record, Spent
from microbench.run import ahead, judge
from microbench.run.crew import Crew
from microbench.run.options import Options
from microbench.run.plan import Key, Plan, Task
from microbench.run.remote import WorkerLost

# A probe that takes its worker down so often will do so again: what is left of it is not tried.
MAX_BREAKAGES = 3


@dataclass
class Suite:
    """A run in progress: its file, its plan, and its workers. `started` is when the run was, by time.perf_counter."""

    options: Options
    path: Path
    environment: Environment
    plan: Plan
    crew: Crew
    started: float
    breakages: Counter[str] = field(default_factory=Counter)

    @property
    def run_id(self) -> str:
        return self.plan.run_id

    @property
    def machine(self) -> Machine:
        return self.plan.machine

    @property
    def batches(self) -> bool:
        return self.options.device != "host"

    def go(self, done: set[Key]) -> None:
        """Measure what is not `done`. Raises DataError, DeviceError; KeyboardInterrupt once all is on disk."""
        options = self.options
        try:
            building = time.perf_counter()
            built = ahead.build(options.chosen, self.machine, options.quick, options.folders, print_line)
            building = time.perf_counter() - building
            self.plan = replace(self.plan, lacking=built.lacking)
            campaigns = [self.plan.tasks(number) for number in range(options.campaigns)]
            with watching(sum(map(len, campaigns))) as watcher:
                if done:
                    watcher.say(f"Continuing the interrupted run {self.run_id}; --fresh starts anew.")
                self._write_unsupported(done)
                for number, campaign in enumerate(campaigns, start=1):
                    more = number < options.campaigns
                    self._campaign(campaign, done, watcher, f"campaign {number}/{options.campaigns}", more)
            self._again(done)
        except KeyboardInterrupt:
            print_line(
                f"Interrupted; what was measured is kept in {self.path.name}, and the same command continues it."
            )
            raise
        now = datetime.now(UTC).isoformat(timespec="seconds")
        wall = time.perf_counter() - self.started
        spent = Spent(wall_s=round(wall, 3), building_s=round(building, 3), starting_s=round(self.crew.starting_s, 3))
        files.append(self.path, Finished(run_id=self.run_id, finished_utc=now, spent=spent))

    def _again(self, done: set[Key]) -> None:
        """More campaigns, of the probes whose constants are in doubt: what was measured stays, and no longer decides.

        A campaign of its own, later and whole: to repeat only the rows that stand out would make the interval a lie.
        """
        options = self.options
        for number in range(options.retries):
            doubts = options.doubted(record.read(self.path))
            if not doubts:
                return
            mine = [probe for probe in options.chosen if probe.name in {doubt.probe for doubt in doubts}]
            tasks = self.plan.tasks(options.campaigns + number, mine)
            with watching(len(tasks)) as watcher:
                watcher.say(
                    f"{si.counted(len(doubts), 'constant')} in doubt, the first {doubts[0]}. Measuring "
                    f"{si.counted(len(mine), 'probe')} again, try {number + 1} of {options.retries} at most. "
                    "What stays in doubt has a ? in the table at the end."
                )
                self._campaign(tasks, done, watcher, f"again {number + 1}/{options.retries}", more=False)

    def _write_unsupported(self, done: set[Key]) -> None:
        for task, reason in self.plan.unsupported():
            if task.key not in done:
                self._write([judge.refused(self.run_id, task, "unsupported", reason)])

    def _campaign(self, tasks: Sequence[Task], done: set[Key], watcher: Watcher, stage: str, more: bool) -> None:
        for name, mine in groupby(tasks, key=lambda task: task.probe.name):
            watcher.doing(stage, name)
            every = list(mine)
            wanted = [task for task in every if task.key not in done]
            watcher.finished(len(every) - len(wanted))
            for _ in self._measure(every[0].probe, wanted, more):
                watcher.finished()
        self.crew.relieve()

    def _measure(self, probe: Probe, tasks: Sequence[Task], more: bool) -> Iterator[Task]:
        """Each task as its rows are written."""
        waiting = []
        for task in tasks:
            rows = self._refused(task)
            if rows:
                self._write(rows)
                yield task
            else:
                waiting.append(task)
        while waiting:
            if self.breakages[probe.name] >= MAX_BREAKAGES:
                reason = f"not tried: {probe.name} ended {MAX_BREAKAGES} workers before"
                for task in waiting:
                    self._write(judge.failed(self.run_id, task, reason))
                    yield task
                return
            batch = tuple(waiting) if self.batches else waiting[:1]
            for task in self._answered(probe, batch, more):
                del waiting[0]
                yield task

    def _answered(self, probe: Probe, batch: Sequence[Task], more: bool) -> Iterator[Task]:
        """The tasks up to the one that took its worker down, if one did, their rows written."""
        answers = self.crew.worker(more).ask(batch)
        for task in batch:
            asked = time.perf_counter()
            try:
                answer = next(answers)
            except WorkerLost as lost:
                self._broken_by(probe)
                self._write(judge.failed(self.run_id, task, str(lost)), time.perf_counter() - asked)
                yield task
                return
            if answer.broken:
                self._broken_by(probe)
            self._write(judge.judged(self.run_id, task, self.machine, answer), answer.seconds)
            yield task
            if answer.broken:
                return

    def _refused(self, task: Task) -> list[Record]:
        """The rows of a point that need not be tried."""
        probe = task.probe
        try:
            reason = probe.skip(self.machine, task.point) if probe.skip else None
        except Exception as error:  # a probe's own function
            return judge.failed(self.run_id, task, f"its skip cannot be computed: {sentence(error, probe.file)}")
        return [judge.refused(self.run_id, task, "unsupported", reason)] if reason else []

    def _write(self, rows: Sequence[Record], seconds: float | None = None) -> None:
        timed = [row.model_copy(update={"seconds": seconds}) for row in rows]
        record.append(self.path, self.environment, *timed)

    def _broken_by(self, probe: Probe) -> None:
        self.breakages[probe.name] += 1
        self.crew.lose()
