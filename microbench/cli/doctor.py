"""`doctor`: is this GPU healthy? A quick run of this board against the shipped reference of its kind."""

import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from microbench import console, device, paths
from microbench import run as runner
from microbench.console import Json
from microbench.console.progress import say
from microbench.console.si import counted
from microbench.errors import InputError, SmscopeError, UnknownGpu
from microbench.health.expected import by_the_same_instrument, expected
from microbench.health.findings import findings, judged, nominal_clock, of_data_sheet, slow_sms
from microbench.health.reference import Reference, reference_of
from microbench.health.state import Finding, of_run, of_state
from microbench.machine import nvml
from microbench.probes import discover
from microbench.results import derive, record
from microbench.results.profile import Profile
from microbench.results.record import FULL_CAMPAIGNS, QUICK_CAMPAIGNS, Run
from microbench.run import retry


@dataclass(frozen=True)
class Examined:
    """A run of one board, its constants, what it is held against, and what is off."""

    run: Run
    profile: Profile
    reference: Reference | None
    findings: tuple[Finding, ...]
    changed: tuple[str, ...] = ()  # probes that measure something else since the reference was measured
    lacking: str = ""  # why there is no reference

    @property
    def heading(self) -> str:
        told = self.run.environment
        return f"{told.name} ({told.gpu}{f', board {told.board}' if told.board else ''})"


def doctor(
    run: Annotated[
        Path | None,
        typer.Option("--run", help="Judge this run's file, and measure nothing.", exists=True, dir_okay=False),
    ] = None,
    where: Annotated[str | None, typer.Option("--device", help="cuda:N; else the first GPU.")] = None,
    json: Json = False,
) -> None:
    """Is my GPU healthy? Measure it for half a minute, and hold it against others of its kind.

    Exit code 0 where nothing is off, 1 where something is, 2 where it could not be looked at.
    """
    try:
        examined = examine(record.read(run)) if run is not None else examine_here(where)
    except SmscopeError as error:
        print(error, file=sys.stderr)
        raise typer.Exit(2) from None
    told = [asdict(finding) for finding in examined.findings]
    reference = examined.reference.told if examined.reference else None
    console.show(
        json, {"gpu": examined.run.environment.gpu, "reference": reference, "findings": told}, *_lines(examined)
    )
    if examined.findings:
        raise typer.Exit(1)


def examine(run: Run, state: nvml.State | None = None, uuid_sha256: str | None = None) -> Examined:
    """Judge one run of a GPU: with what NVML says of the board now, and the UUID that it should be of, where known."""
    told, probes = run.environment, discover()
    if told.arch == "host":
        raise InputError(f"{told.gpu} is a CPU; doctor looks at NVIDIA GPUs.")
    derived = derive.reduce_runs([run], probes, told.board or None)
    found = list(of_state(state or nvml.State(ecc=told.ecc)))
    if uuid_sha256 and told.uuid_sha256 and uuid_sha256 != told.uuid_sha256:
        found.append(Finding("board", f"the run is of board {told.board}, and this one is {nvml.board(uuid_sha256)}."))
    found += [*of_run(run), *slow_sms(run)]
    try:
        whole = reference_of(told)
    except UnknownGpu as error:
        found += [*nominal_clock(derived.profile), *of_data_sheet(derived.profile, told.dram_bytes_per_s)]
        return Examined(run, derived.profile, None, tuple(found), lacking=str(error))
    reference = by_the_same_instrument(whole, told.run_id, probes)
    found += findings(derived.profile, reference, expected(run, whole, probes))
    named = {finding.about for finding in found}
    sheet = of_data_sheet(derived.profile, told.dram_bytes_per_s, reference)
    found += [each for each in sheet if each.about not in named]
    changed = sorted({each.probe for each in whole.profile.constants if each.name not in reference.profile})
    return Examined(run, derived.profile, reference, tuple(found), tuple(changed))


def examine_here(where: str | None, wait: bool = True, whole: bool = False) -> Examined:
    """Measure a GPU of this machine for half a minute, and judge it; `wait` for another run that measures it.

    The `whole` suite takes minutes, gives every constant, and goes on with a run of it that was interrupted.
    Raises NoGpu, or InputError where it is not there, BusyError where nobody waits.
    """
    gpu = _gpu(where)
    measured = _measured(where, wait, whole)
    return examine(measured, nvml.state(gpu), nvml.facts(gpu).uuid_sha256)


def _gpu(where: str | None) -> nvml.Gpu:
    gpus = nvml.visible_gpus()
    index = (where or "cuda:0").partition(":")[2]
    if (where or "cuda:0").startswith("cuda") and index.isdecimal() and int(index) < len(gpus):
        return gpus[int(index)]
    to, instead = "to look at here", "--run FILE judges a run that was measured elsewhere"
    if not gpus:
        raise nvml.no_gpu(f"{where} {to}" if where else to, instead)
    raise InputError(f"There is no NVIDIA GPU {where} {to} (no such number); {instead}.")


def _measured(where: str | None, wait: bool, whole: bool) -> Run:
    found = device.choose(where or "cuda:0")
    say(f"Measuring {found.device} for {'some minutes' if whole else 'half a minute'}: {found.why}.")
    options = runner.Options(found.device, discover(), quick=True, campaigns=QUICK_CAMPAIGNS, fresh=True, wait=wait)
    if whole:
        doubted = partial(retry.doubted, probes=options.probes)
        options = replace(
            options, quick=False, campaigns=FULL_CAMPAIGNS, fresh=False, retries=retry.MOST, doubted=doubted
        )
    return runner.run(options).run


def _lines(examined: Examined) -> Iterator[str]:
    yield examined.heading
    reference = examined.reference
    if not examined.run.finished:
        yield "This run did not finish: what is missing in it is not looked at."
    if reference is None:
        yield f"{examined.lacking} `smscope run` adds it."
    elif not reference.same_kind:
        yield f"No board of this kind has a reference, so it is held against {reference.told} and its data sheet."
    else:
        yield f"Held against {reference.told}."
    yield from (f"  off: {finding}" for finding in examined.findings)
    if examined.changed:
        names = ", ".join(examined.changed)
        yield f"Measured otherwise than the reference, and held against data sheets alone: {names}."
    count = judged(examined.profile, reference)
    if examined.findings:
        yield f"{counted(len(examined.findings), 'finding')}; {counted(count, 'constant')} judged."
    elif count:
        yield f"Healthy: nothing is off in {counted(count, 'constant')} that {'was' if count == 1 else 'were'} judged."
    else:
        yield "Nothing is off, and there is nothing to judge its constants by."
    whole = f"; `{paths.typed('bench')}` measures all of it, in minutes" if examined.run.environment.quick else ""
    yield f"Run: {console.near(examined.run.path)}{whole}."
