"""The verb `campaign`: every configuration of our forwards, timed on a set of problems."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from attention.campaign import draw, flash_4_ahead, freeze, going_on, plan, rivals, rows, set_a, set_use
from attention.campaign.freeze import Freeze
from attention.campaign.plan import Job
from attention.campaign.rows import ProblemTiming, Set
from attention.choose.machine import machine_profile
from attention.errors import ADDS_TORCH
from attention.tile import FETCH_BYTES
from attention.timed import campaigns, compiled_here
from microbench import console
from microbench.compile import Source
from microbench.compile.together import compile_together
from microbench.console import Json
from microbench.console.progress import say
from microbench.console.si import counted
from microbench.errors import EnvironmentLacks, InputError, NoGpu
from microbench.machine import nvml, stamp
from microbench.machine.arch import by_name
from microbench.measure.alternate import L2_READ
from microbench.results.profile import Profile
from microbench.run import lock
from smscope.campaign_asked import Asked, asked_of
from smscope.verified import budget


@dataclass(frozen=True)
class Campaign:
    """One campaign on this GPU: which set, which number, and the freeze that the set was drawn from."""

    gpu: nvml.Gpu
    which: Set
    number: int
    frozen: Freeze | None

    @property
    def seed(self) -> str:
        """Of the order of problems; with a problem's own words, of its configurations."""
        return f"{self.which} {self.number} {self.frozen.short if self.frozen else ''}".strip()


def campaign(
    which: Annotated[
        str,
        typer.Option(
            "--set",
            help="a, which is typed; b, drawn from a freeze; floors, beside peers; use, drawn by weights, beside all.",
        ),
    ] = "a",
    number: Annotated[
        int | None, typer.Option(min=1, help="The campaign; by default the last that is unfinished, else a new one.")
    ] = None,
    within: Annotated[
        str | None, typer.Option("--budget", help="9m, 90s or 1h: stop cleanly before; the next call goes on.")
    ] = None,
    freeze_of: Annotated[
        str | None,
        typer.Option(
            "--freeze", help="GPU: name HEAD as the commit from which sets b and use are drawn, and time nothing."
        ),
    ] = None,
    of_freeze: Annotated[
        str | None,
        typer.Option("--of", help="With --set b or use: the freeze, by its commit; by default that of today's model."),
    ] = None,
    leave_out: Annotated[
        list[str] | None,
        typer.Option("--without", help="With --set floors or use: a peer to leave out, peer/flash_attn_4."),
    ] = None,
    plan_only: Annotated[bool, typer.Option("--plan", help="Say what is left and how long it takes.")] = False,
    ahead: Annotated[
        bool, typer.Option("--ahead", help="Compile what is left, without a GPU, and time nothing.")
    ] = False,
    again: Annotated[
        bool,
        typer.Option(
            "--again", help="Compile what was timed of kernels whose text has changed, so that the same code's count."
        ),
    ] = False,
    on: Annotated[
        str | None, typer.Option("--gpu", help="With --plan and --ahead: a profile's name, where it is not here.")
    ] = None,
    json: Json = False,
) -> None:
    """Time every legal configuration of our forwards on a set of problems, for the judgement of the model.

    With --set floors: what a call of ours would run, the two next best by prediction and every peer that is installed,
    on the problems that `smscope floors` judges.

    With --set use: every legal configuration of ours, every peer, and calls of attention.sdpa and flash_attn_func, on
    200 problems drawn by weights of what attention is used for (attention/campaign/set_use.py); where the GPU takes
    less than 50 us, calls outside of graphs as well. `smscope floors --set use` judges them.

    Each problem is a line of data/campaigns/<gpu>/<set>-<campaign>.jsonl, appended before the next begins. Kernels are
    compiled ahead on all cores. A campaign that was interrupted, or ended by its budget, goes on in the next call; one
    that is whole is followed by the next, in another call: two campaigns lie apart in time. Exit code 1 where a
    configuration of ours was wrong or failed.
    """
    if freeze_of is not None:
        frozen, place = freeze.freeze(stamp.ROOT, freeze_of)
        problems = draw.drawn(frozen.commit, set_a.problems())
        told = {"commit": frozen.commit, "files": len(frozen.hashes), "file": str(place), "problems": len(problems)}
        console.show(
            json,
            told,
            f"Wrote {console.near(place)}: {counted(len(frozen.hashes), 'file')} of the model and the profile as "
            f"{frozen.short} has them. Set b has {counted(len(problems), 'problem')}, the set of use {set_use.COUNT}.",
        )
        return
    if again:
        if not nvml.visible_gpus():
            raise nvml.no_gpu("here", "--again compiles where campaigns were timed")
        _compile_again(_profile(None), json)
        return
    asked = asked_of(which, of_freeze, leave_out or ())
    if plan_only or ahead:
        _say_plan(asked, _profile(on), ahead, json)
        return
    if on is not None:
        raise InputError("--gpu is of --plan and --ahead; a campaign runs on the GPU that is here.")
    _run(asked, number, within, json)


def _compile_again(profile: Profile, json: bool) -> None:
    """By the compiler that is here: another one's cubins would not be those that were timed."""
    timed = (each for file in campaigns.files(profile.gpu) for _, each in campaigns.observed(file)[0] if each.cubins)
    found = compiled_here.renew(by_name(profile.arch), timed)
    said = ", ".join(f"{counted(many, 'build')} of {path}" for path, many in found.items()) or "no kernel of ours"
    console.show(json, found, f"Of today's text and of code that was timed, not known before: {said}.")


def _profile(asked: str | None) -> Profile:
    gpus = nvml.visible_gpus()
    if asked is None and not gpus:
        raise nvml.no_gpu("here", "name a profile by --gpu")
    return Profile.load(asked or gpus[0].slug)


def _say_plan(asked: Asked, profile: Profile, ahead: bool, json: bool) -> None:
    todo = asked.jobs(profile)
    expected = plan.estimate(todo, {})
    tiles = sum(len(job.tiles) for job in todo)
    told: dict[str, Any] = {
        "set": asked.which,
        "problems": len(todo),
        "configurations": tiles,
        "peers": sorted({peer.name for job in todo for peer in job.peers}),
        "kernels_to_compile": len(expected.missing),
        "compile_s": round(expected.compile_s),
        "timing_s": round(expected.timing_s),
    }
    console.show(json, told, _expected(todo, expected))
    if ahead and expected.missing:
        _compile(expected.missing)


def _expected(todo: Sequence[Job], expected: plan.Estimate) -> str:
    tiles = sum(len(job.tiles) for job in todo)
    missing = len(expected.missing)
    compiling = f"{counted(missing, 'kernel')} to compile on {os.cpu_count()} cores, {budget.told(expected.compile_s)}"
    return (
        f"{counted(len(todo), 'problem')} by {counted(tiles, 'configuration')}: {compiling}; timing "
        f"{budget.told(expected.timing_s)} by the model's predictions."
    )


def _run(asked: Asked, number: int | None, within: str | None, json: bool) -> None:
    allowed = budget.started(within)
    gpus = nvml.visible_gpus()
    if not gpus:
        raise nvml.no_gpu("to time kernels on")
    try:
        import torch
    except ImportError as error:
        raise EnvironmentLacks(
            f"A campaign launches kernels through torch, which is not here; {ADDS_TORCH}."
        ) from error
    if not torch.cuda.is_available():
        raise NoGpu("This torch sees no NVIDIA GPU; install a CUDA build of it.")
    profile = machine_profile("cuda").profile
    if asked.frozen is not None:
        freeze.require_unchanged(asked.frozen, stamp.ROOT)
    every = asked.jobs(profile)
    with lock.hold("cuda:0", wait=True, say=say, of="campaign"):
        begun, done = started(gpus[0], asked.which, number, asked.frozen, every)
        todo = plan.ordered(plan.left(every, done), begun.seed)
        whose = f"Campaign {begun.number} of set {begun.which} on {begun.gpu.slug}"
        say(f"{whose}: {len(every) - len(todo)} of {len(every)} done.")
        kept: dict[Source, bool] = {}
        say(f"Left: {_expected(todo, plan.estimate(todo, kept))}")
        todo = flash_4_ahead.compiled(todo, allowed.fits)
        from microbench.device.cuda import CudaDevice

        device = CudaDevice(torch.cuda.current_device())
        timed: list[ProblemTiming] = []

        def time_one(job: Job) -> None:
            timed.append(_timed(begun, job, device))
            rows.append(timed[-1])

        try:
            ended = going_on.go_on(todo, allowed.fits, _compile, time_one, kept)
        except KeyboardInterrupt:
            say("Interrupted; every problem that was timed is kept, and the same command goes on.")
            raise
    _say_ended(begun, timed, ended, json)


def started(
    gpu: nvml.Gpu, which: Set, number: int | None, frozen: Freeze | None, every: Sequence[Job]
) -> tuple[Campaign, tuple[ProblemTiming, ...]]:
    """The campaign that a call goes on with, and its lines: the last where it lacks problems, else the next.

    Lines of other texts of a kernel, or of another freeze, are another campaign's.
    """
    known = rows.campaigns(gpu.slug, which)
    texts = plan.texts(every[0].arch) if every else {}
    last = number or (known[-1] if known else 1)
    lines = rows.read(gpu.slug, which, last)
    mine = tuple(row for row in rows.of_texts(lines, texts) if row.freeze == (frozen.commit if frozen else None))
    if number is None and lines and (len(mine) < len(lines) or not plan.left(every, mine)):
        last, mine = last + 1, ()
    elif number is not None and len(mine) < len(lines):
        raise InputError(f"Campaign {number} of set {which} is of other kernels or another freeze; leave out --number.")
    return Campaign(gpu, which, last, frozen), mine


def _compile(sources: Sequence[Source]) -> None:
    for refused in compile_together(sources).refused:
        say(f"Not compiled: {refused}")


def _timed(begun: Campaign, job: Job, device: Any) -> ProblemTiming:
    from attention.campaign import timing

    seed, began = f"{begun.seed} {job.posed}", time.monotonic()
    tiles, flags = timing.timed(device, job, seed)
    facts, commit = nvml.facts(begun.gpu), stamp.commit()
    return ProblemTiming(
        gpu=begun.gpu.slug,
        set=begun.which,
        campaign=begun.number,
        freeze=begun.frozen.commit if begun.frozen else None,
        commit=commit.sha,
        dirty=commit.dirty,
        seed=seed,
        measured_utc=datetime.now(UTC).isoformat(timespec="seconds"),
        wall_s=round(time.monotonic() - began, 3),
        kind=job.posed.kind,
        problem=job.posed.problem,
        lengths=job.posed.lengths,
        used=job.posed.used,
        l2_read=L2_READ,
        fetch_bytes=FETCH_BYTES,
        use=job.use,
        texts=plan.texts(job.arch),
        driver=facts.driver,
        packages=rivals.packages(job.peers),
        flags=flags,
        tiles=tiles,
    )


def _say_ended(begun: Campaign, timed: Sequence[ProblemTiming], ended: going_on.Ended, json: bool) -> None:
    file = rows.file_of(begun.gpu.slug, begun.which, begun.number)
    without = [(row, tile) for row in timed for tile in row.tiles if tile.failure]
    failed = [(row, tile) for row, tile in without if not tile.is_peer]
    told = {
        "file": str(file),
        "campaign": begun.number,
        "timed": ended.timed,
        "left": len(ended.left),
        "failed": len(failed),
        "refused": len(without) - len(failed),
    }
    left = counted(len(ended.left), "problem")
    wall = budget.told(sum(row.wall_s for row in timed))
    said = f"{left} left: the same command goes on." if ended.left else "The campaign is whole."
    console.show(
        json,
        told,
        f"Timed {counted(ended.timed, 'problem')} in {wall}, into {console.near(file)}. {said}",
        *(f"{tile.variant} {tile.config} on {row.posed}: {tile.failure}" for row, tile in failed[:20]),
    )
    if not timed and ended.left:
        first = budget.told(ended.left[0].estimate_s)
        raise InputError(f"The budget holds no problem: {ended.left[0].posed} and its kernels take {first} or more.")
    if failed:
        raise typer.Exit(1)
