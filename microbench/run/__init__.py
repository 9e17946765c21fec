"""The supervisor of a run. It never makes a GPU context: it asks one worker per campaign, judges, and writes.

run -> lock -> worker (says which GPU it is) -> run file, new or resumed -> campaigns -> more if in doubt -> Finished

A worker that hangs or dies costs the one point it was at: the row is `failed` with the reason, a fresh worker goes on.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from microbench import device, files, paths
from microbench.console import si
from microbench.console.progress import Watcher, watching
from microbench.console.progress import say as print_line
from microbench.errors import DataError, sentence
from microbench.machine.arch import Machine
from microbench.probe import Probe
from microbench.results import record
from microbench.results.doubt import Doubt
from microbench.results.record import FULL_CAMPAIGNS, Environment, Finished, Record, Run
from microbench.run import ahead, environment, judge, lock, plan, remote
from microbench.run.plan import Key, Plan, Task
from microbench.run.remote import RemoteWorker, WorkerLost

# A probe that takes its worker down so often will do so again: what is left of it is not tried.
MAX_BREAKAGES = 3


@dataclass(frozen=True)
class Options:
    device: str  # 'host' or 'cuda:N'
    probes: tuple[Probe, ...]
    folders: tuple[Path, ...] = ()  # more places where workers find probes
    only: tuple[str, ...] = ()  # names; empty for all
    quick: bool = False
    campaigns: int = FULL_CAMPAIGNS
    fresh: bool = False  # never go on with an interrupted run
    wait: bool = True  # for another run on this device
    retries: int = 0  # more campaigns at most, for the probes of constants that `doubted` names
    doubted: Callable[[Run], Sequence[Doubt]] = lambda _: ()

    @property
    def chosen(self) -> tuple[Probe, ...]:
        return tuple(probe for probe in self.probes if not self.only or probe.name in self.only)


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
        return any(record.status in ("ok", "throttled") for record in self.run.records)

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
    with lock.hold(options.device, options.wait, print_line):
        worker = remote.start(options.device, options.quick, options.folders)
        try:
            hello = worker.hello
            wanted = environment.describe(
                hello, options.quick, options.only, options.campaigns, options.folders, options.chosen
            )
            found = None if options.fresh else unfinished(wanted)
            path = found.path if found else _new_file(wanted)
            told = found.environment if found else wanted
            planned = Plan(told.run_id, options.chosen, hello.machine, options.campaigns, options.quick)
            suite = Suite(options, path, told, planned, worker)
        except BaseException:
            worker.kill()
            raise
        done = plan.done(found) if found else set()
        suite.go(done)
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


@dataclass
class Suite:
    """A run in progress: its file, its machine, and the worker of the moment."""

    options: Options
    path: Path
    environment: Environment
    plan: Plan
    worker: RemoteWorker | None
    breakages: Counter[str] = field(default_factory=Counter)

    @property
    def run_id(self) -> str:
        return self.plan.run_id

    @property
    def machine(self) -> Machine:
        return self.plan.machine

    def go(self, done: set[Key]) -> None:
        options = self.options
        try:
            built = ahead.build(options.chosen, self.machine, options.quick, options.folders, print_line)
            self.plan = replace(self.plan, lacking=built.lacking)
            campaigns = [self.plan.tasks(number) for number in range(options.campaigns)]
            with watching(sum(map(len, campaigns))) as watcher:
                if done:
                    watcher.say(f"Continuing the interrupted run {self.run_id}; --fresh starts anew.")
                self._write_unsupported(done)
                for number, campaign in enumerate(campaigns, start=1):
                    self._campaign(campaign, done, watcher, f"campaign {number}/{options.campaigns}")
            self._again(done)
        except KeyboardInterrupt:
            print_line(
                f"Interrupted; what was measured is kept in {self.path.name}, and the same command continues it."
            )
            raise
        finally:
            self._end_worker(kill=True)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        files.append(self.path, Finished(run_id=self.run_id, finished_utc=now))

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
                self._campaign(tasks, done, watcher, f"again {number + 1}/{options.retries}")

    def _write_unsupported(self, done: set[Key]) -> None:
        rows = [
            judge.refused(self.run_id, task, "unsupported", reason)
            for task, reason in self.plan.unsupported()
            if task.key not in done
        ]
        if rows:
            record.append(self.path, self.environment, *rows)

    def _campaign(self, tasks: Iterable[Task], done: set[Key], watcher: Watcher, stage: str) -> None:
        for task in tasks:
            if task.key not in done:
                watcher.doing(stage, task.probe.name)
                record.append(self.path, self.environment, *self._measure(task))
            watcher.finished()
        self._end_worker(kill=False)

    def _measure(self, task: Task) -> list[Record]:
        probe = task.probe
        try:
            reason = probe.skip(self.machine, task.point) if probe.skip else None
        except Exception as error:  # a probe's own function
            return judge.failed(self.run_id, task, f"its skip cannot be computed: {sentence(error, probe.file)}")
        if reason:
            return [judge.refused(self.run_id, task, "unsupported", reason)]
        if self.breakages[probe.name] >= MAX_BREAKAGES:
            return judge.failed(self.run_id, task, f"not tried: {probe.name} ended {MAX_BREAKAGES} workers before")
        if self.worker is None:
            self.worker = remote.start(self.options.device, self.options.quick, self.options.folders)
        try:
            answer = self.worker.ask(task)
        except WorkerLost as lost:
            self._broken_by(probe)
            return judge.failed(self.run_id, task, str(lost))
        if answer.broken:
            self._broken_by(probe)
        return judge.judged(self.run_id, task, self.machine, answer)

    def _broken_by(self, probe: Probe) -> None:
        self.breakages[probe.name] += 1
        self._end_worker(kill=True)

    def _end_worker(self, kill: bool) -> None:
        if self.worker is None:
            return
        if kill:
            self.worker.kill()
        else:
            self.worker.close()
        self.worker = None
