"""What was measured of the board that everything else runs on, and the doctor's findings in it, as a result.

A kind of GPU that has a profile is only looked at: a quick run, held against the others of its kind. Of a kind that
has none the whole suite is run, which gives every constant of its architecture, and the board gets its profile.
"""

from collections.abc import Mapping
from typing import Any, Literal

from microbench.cli import doctor
from microbench.console.progress import say
from microbench.console.si import counted
from microbench.machine import arch
from microbench.probes import discover
from microbench.results import derive
from microbench.verify.results import Failure, Result
from smscope.verified.packed import PackedRun, pack


class BoardResult(Result):
    """A run of one board, held against others of its kind; a finding is a failure."""

    folder = "doctor"
    kind: Literal["board"] = "board"
    run: str  # the id of the run that was judged
    reference: str | None = None  # what it was held against
    constants: int
    absent: tuple[str, ...] = ()  # what the whole suite should have given beside them
    measured: PackedRun | None = None  # the run itself; files from before have none

    @property
    def subject(self) -> str:
        return "board"

    @property
    def told(self) -> str:
        against = self.reference or "its data sheet"
        absent = f" ({len(self.absent)} more came to no value)" if self.absent else ""
        found = counted(len(self.failures), "finding")
        return f"{found} in {counted(self.constants, 'constant')}{absent}, against {against}"


def verify(device: str, where: Mapping[str, Any], wait: bool = True, whole: bool = False) -> BoardResult:
    """Measure `device` ('cuda:N') for half a minute, or the `whole` suite, and write the profile that follows.

    `where` is results.where() of it. Raises SmscopeError; KeyboardInterrupt once all is on disk, which the next call of
    a whole suite goes on with.
    """
    examined = doctor.examine_here(device, wait, whole)
    told = examined.run.environment
    failures = [Failure(what=each.about, reason=each.text) for each in examined.findings]
    if not examined.profile.constants:
        failures.append(Failure(what="run", reason="no constant came of it; its rows, in this file, say why."))
    elif whole:
        profile = derive.derive(told.gpu, discover(), told.board or None).profile
        say(f"The profile of this board is {derive.write(profile).name}.")
    return BoardResult(
        **where,
        nvrtc=told.nvrtc or "",
        cubins=(),
        failures=tuple(failures),
        run=told.run_id,
        reference=examined.reference.told if examined.reference else None,
        constants=len(examined.profile.constants),
        absent=tuple(name for name in declared(told.arch) if name not in examined.profile) if whole else (),
        measured=pack(examined.run.path),
    )


def declared(on: str) -> list[str]:
    """The constants that the probes of an architecture declare, second methods apart."""
    here = [probe for probe in discover() if probe.runs_on(arch.by_name(on))]
    return [constant.name for probe in here for constant in probe.constants if not constant.method]
