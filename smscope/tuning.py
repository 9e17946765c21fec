"""The verb `tune`: the top few candidates, ours and torch's, timed on the classes of problems that a program poses."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from attention.ahead import recorded
from attention.ahead.recorded import RecordedCall
from attention.campaign import going_on, plan, tune
from attention.campaign.plan import Job
from attention.campaign.posed import Posed, parse
from attention.campaign.recorded_classes import classes_of
from attention.campaign.tune import Tuned
from attention.choose import here, tunings, tunings_file
from attention.choose.candidates import Candidate
from attention.choose.here import Here
from attention.choose.machine import machine_profile, nameable
from attention.choose.tunings_file import Line
from attention.errors import ADDS_TORCH, ProblemError
from attention.timed.timing import PEER
from microbench import console
from microbench.compile import Source
from microbench.compile.together import compile_together
from microbench.console import Json
from microbench.console.progress import say
from microbench.console.si import counted, written
from microbench.errors import EnvironmentLacks, InputError, NoGpu
from microbench.machine import nvml, stamp
from microbench.results.profile import Profile
from microbench.results.record import DISTURBANCES
from microbench.run import lock
from smscope import tune_plan
from smscope.tune_plan import kernel
from smscope.verified import budget

EXAMPLE = "prefill 4 16 16 4096 4096 128 bf16 causal"
GRAMMAR = "Class, B, Hq, Hkv, Sq, Skv, D, dtype, and words for what else is asked"


@dataclass(frozen=True)
class Done:
    """A class that was timed, its line, and what a call of it runs from now on."""

    tuned: Tuned
    line: Line
    now: Candidate

    def seconds(self, candidate: Candidate) -> float | None:
        """Of a call by a candidate; None where it has no sample."""
        found = tunings.tuning(self.line).of(candidate)
        return None if found is None else found.seconds

    def __str__(self) -> str:
        was = self.tuned.was
        calls = f" ({counted(self.line.calls, 'call')})" if self.line.calls else ""
        said = f"{self.line.problem}{calls}: {kernel(self.now)}, {_time(self.seconds(self.now))}"
        if disturbed := [each for each in self.line.flags if each in DISTURBANCES]:
            return f"{said}. The GPU was disturbed ({', '.join(disturbed)}), so that these timings decide nothing."
        before = "as before" if kernel(self.now) == kernel(was) else f"before {kernel(was)}, {_time(self.seconds(was))}"
        return f"{said}; {before}."


def tune_verb(
    file: Annotated[Path | None, typer.Argument(help="What attention.record wrote; the most frequent first.")] = None,
    problem: Annotated[list[str] | None, typer.Option("--problem", help=f"{GRAMMAR}: '{EXAMPLE}'. Repeatable.")] = None,
    within: Annotated[str, typer.Option("--budget", help="180s, 3m: what does not fit it is named, and left.")] = "3m",
    plan_only: Annotated[bool, typer.Option("--plan", help="Say what would be timed, and time nothing.")] = False,
    on: Annotated[
        str | None,
        typer.Option(
            "--gpu", help="With --plan: a profile, GPU or architecture that need not be here.", autocompletion=nameable
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Time the top few candidates on the classes of problems that you name, or that a program was recorded to pose.

    Candidates are the fastest of ours by prediction and the kernels of torch's that serve. Each class is a line of
    tunings/<gpu>.jsonl in data/, or in the user's data folder, and from then on its fastest candidate runs: as long as
    driver, torch and the kernels' texts are the same. Exit code 1 where a configuration of ours was wrong or failed.

    --plan needs no GPU where --gpu names one.
    """
    if file is None and not problem:
        raise ProblemError(f"tune has nothing to time; give a file of attention.record, or --problem '{EXAMPLE}'.")
    named = [_parsed(each) for each in problem or ()]
    allowed = budget.started(within)
    calls = recorded.read(file) if file is not None else {}
    if plan_only and (on is not None or not nvml.visible_gpus()):
        tune_plan.say_plan(*_todo(named, calls, tune_plan.profile_of(on)), json)
        return
    if on is not None:
        raise InputError("--gpu is of --plan; tune times on the GPU that is here.")
    gpu = _gpu()
    profile = machine_profile("cuda").profile
    found = here.here_of(profile)
    if found is None:
        raise EnvironmentLacks("Neither the driver's module nor NVML says which driver runs here; nothing was timed.")
    todo, left_out = _todo(named, calls, profile)
    if plan_only:
        tune_plan.say_plan(todo, left_out, json)
        return
    _run(_Machine(gpu, profile, found), todo, left_out, allowed, json)


def _todo(
    named: Sequence[Posed], calls: Mapping[RecordedCall, int], profile: Profile
) -> tuple[tuple[Tuned, ...], tuple[str, ...]]:
    """What is timed on the machine of a profile, and what is left out. Raises InputError where nothing remains."""
    asked = classes_of(named, calls)
    todo, undecided = tune.jobs(asked.classes, profile)
    left_out = (*asked.left_out, *undecided)
    if not todo:
        raise InputError("\n".join((*(f"Left out: {each}." for each in left_out), "That leaves nothing to time.")))
    return todo, left_out


@dataclass(frozen=True)
class _Machine:
    gpu: nvml.Gpu
    profile: Profile
    here: Here


def _parsed(text: str) -> Posed:
    try:
        return parse(text)
    except ValueError as error:
        if isinstance(error, ProblemError):
            raise
        raise ProblemError(f"--problem {text!r} is no problem; write {GRAMMAR}, as in '{EXAMPLE}'.") from error


def _gpu() -> nvml.Gpu:
    gpus = nvml.visible_gpus()
    if not gpus:
        raise nvml.no_gpu("to time kernels on")
    try:
        import torch
    except ImportError as error:
        raise EnvironmentLacks(f"tune launches kernels through torch, which is not here; {ADDS_TORCH}.") from error
    if not torch.cuda.is_available():
        raise NoGpu("This torch sees no NVIDIA GPU; install a CUDA build of it.")
    return gpus[0]


def _run(machine: _Machine, todo: Sequence[Tuned], left_out: Sequence[str], allowed: budget.Budget, json: bool) -> None:
    import torch

    done: list[Done] = []
    with lock.hold("cuda:0", wait=True, say=say, of="campaign"):
        kept: dict[Source, bool] = {}
        say(tune_plan.effort(todo, plan.estimate([each.job for each in todo], kept)))
        from microbench.device.cuda import CudaDevice

        device = CudaDevice(torch.cuda.current_device())

        def time_one(job: Job) -> None:
            done.append(_timed(machine, next(each for each in todo if each.job is job), device))

        try:
            ended = going_on.go_on([each.job for each in todo], allowed.fits, _compile, time_one, kept)
        except KeyboardInterrupt:
            say("Interrupted; every problem that was timed is kept.")
            raise
    _say_ended(machine.here, done, ended, left_out, json)


def _compile(sources: Sequence[Source]) -> None:
    for refused in compile_together(sources).refused:
        say(f"Not compiled: {refused}")


def _timed(machine: _Machine, tuned: Tuned, device: Any) -> Done:
    from attention.campaign import timing

    began = time.monotonic()
    tiles, flags = timing.timed(device, tuned.job, tuned.seed)
    line = tune.line_of(tuned, machine.here, tiles, flags, time.monotonic() - began, stamp.commit())
    tunings_file.append(line)
    tunings.forget()
    return Done(tuned, line, tune.pick_of(machine.profile, tuned.job.posed.problem))


def _say_ended(found: Here, done: Sequence[Done], ended: going_on.Ended, left_out: Sequence[str], json: bool) -> None:
    file = tunings_file.place(found.gpu)
    without = [(each, one) for each in done for one in each.line.candidates if one.failure]
    failed = [(each, one) for each, one in without if not one.variant.startswith(PEER)]
    told = {
        "file": str(file),
        "gpu": found.gpu,
        "driver": found.driver,
        "torch": found.torch,
        "timed": [_told(each) for each in done],
        "left": [str(each.posed) for each in ended.left],
        "left_out": list(left_out),
        "failed": len(failed),
        "refused": len(without) - len(failed),
    }
    wall = budget.told(sum(each.line.wall_s for each in done))
    first = f"Timed {counted(len(done), 'problem')} in {wall}" + (f", into {console.near(file)}." if done else ".")
    left = [f"The budget did not hold {each.posed}." for each in ended.left]
    left += [f"Left out: {each}." for each in left_out]
    wrong = [f"{one.variant} {one.config} on {each.line.problem}: {one.failure}" for each, one in failed]
    console.show(json, told, *map(str, done), first, *left, *wrong)
    if not done and ended.left:
        needs = budget.told(ended.left[0].estimate_s)
        raise InputError(f"The budget holds no problem: {ended.left[0].posed} and its kernels take {needs} or more.")
    if failed:
        raise typer.Exit(1)


def _told(done: Done) -> dict[str, Any]:
    return {
        "problem": str(done.line.problem),
        "calls": done.line.calls,
        "before": kernel(done.tuned.was),
        "before_seconds": done.seconds(done.tuned.was),
        "now": kernel(done.now),
        "now_seconds": done.seconds(done.now),
        "flags": list(done.line.flags),
        "wall_s": done.line.wall_s,
    }


def _time(seconds: float | None) -> str:
    return "not timed" if seconds is None else written(seconds, "s")
