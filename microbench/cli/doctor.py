"""`doctor`: is this GPU healthy? A quick run of this board against the shipped reference of its kind."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from microbench import console, device, paths
from microbench import run as runner
from microbench.console import Json
from microbench.console.progress import say
from microbench.console.si import counted
from microbench.errors import EnvironmentLacks, InputError, SmscopeError, UnknownGpu
from microbench.health.findings import findings, of_data_sheet, slow_sms
from microbench.health.reference import Reference, reference_of
from microbench.health.state import Finding, of_state
from microbench.machine import nvml
from microbench.probe import Probe
from microbench.probes import discover
from microbench.results import derive, record
from microbench.results.profile import Profile
from microbench.results.profile_constant import ProfileConstant
from microbench.results.record import QUICK_CAMPAIGNS, Run


@dataclass(frozen=True)
class Examined:
    """A run of one board, its constants, what it is held against, and what is off."""

    run: Run
    profile: Profile
    reference: Reference | None
    findings: tuple[Finding, ...]
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
    found += slow_sms(run)
    try:
        reference = _by_the_same_instrument(reference_of(told), told.run_id, probes)
    except UnknownGpu as error:
        found += of_data_sheet(derived.profile, told.dram_bytes_per_s)
        return Examined(run, derived.profile, None, tuple(found), str(error))
    found += findings(derived.profile, reference, _expected(run, reference, probes))
    if not reference.same_kind:
        found += of_data_sheet(derived.profile, told.dram_bytes_per_s)
    return Examined(run, derived.profile, reference, tuple(found))


def examine_here(where: str | None, wait: bool = True) -> Examined:
    """Measure a GPU of this machine for half a minute, and judge it; `wait` for another run that measures it.

    Raises EnvironmentLacks where it is not there, BusyError where nobody waits.
    """
    gpu = _gpu(where)
    measured = _measured(where, wait)
    return examine(measured, nvml.state(gpu), nvml.facts(gpu).uuid_sha256)


def _by_the_same_instrument(reference: Reference, run_id: str, probes: Sequence[Probe]) -> Reference:
    """Without the constants of probes that measured something else at the time of one of the two."""
    since = {probe.name: probe.since for probe in probes}

    def comparable(constant: ProfileConstant) -> bool:
        begin = since.get(constant.probe, "")
        return (max(constant.runs, default="") >= begin) == (run_id >= begin)

    kept = tuple(filter(comparable, reference.profile.constants))
    return replace(reference, profile=reference.profile.model_copy(update={"constants": kept}))


def _expected(run: Run, reference: Reference, probes: Sequence[Probe]) -> list[str]:
    """The constants that a run of these probes gives on a board of the reference's kind.

    A probe that came later is in no older run. A quick run has no soak, and leaves points out, and with them some
    constants: of it those of probes that failed at some point.
    """
    told = run.environment
    known = set(told.probes) or {row.probe for row in run.records}
    asked = {probe.name for probe in probes if probe.name in (told.only or known)}
    if told.quick:
        asked -= {probe.name for probe in probes if probe.campaigns is not None}
        failed = {row.probe for row in run.records if row.status == "failed" and row.method != "numba"}
        asked -= {row.probe for row in run.records} - failed
    wanted = (each for each in reference.profile.constants if each.method != "numba" and each.probe in asked)
    return [each.name for each in wanted] if reference.same_kind else []


def _gpu(where: str | None) -> nvml.Gpu:
    gpus = nvml.visible_gpus()
    index = (where or "cuda:0").partition(":")[2]
    if (where or "cuda:0").startswith("cuda") and index.isdecimal() and int(index) < len(gpus):
        return gpus[int(index)]
    why = "no such number" if gpus else nvml.why_no_gpu()
    raise EnvironmentLacks(
        f"There is no NVIDIA GPU {f'{where} ' if where else ''}to look at here ({why}); "
        "--run FILE judges a run that was measured elsewhere."
    )


def _measured(where: str | None, wait: bool) -> Run:
    found = device.choose(where or "cuda:0")
    say(f"Measuring {found.device} for half a minute: {found.why}.")
    options = runner.Options(found.device, discover(), quick=True, campaigns=QUICK_CAMPAIGNS, fresh=True, wait=wait)
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
    judged = len(examined.profile.constants)
    if examined.findings:
        yield f"{counted(len(examined.findings), 'finding')}, in {counted(judged, 'constant')}."
    else:
        yield f"Healthy: nothing is off in {counted(judged, 'constant')}."
    whole = f"; `{paths.typed('bench')}` measures all of it, in minutes" if examined.run.environment.quick else ""
    yield f"Run: {console.near(examined.run.path)}{whole}."
