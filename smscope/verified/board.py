"""The doctor's findings as a result: is the board that everything else ran on a healthy one?"""

from collections.abc import Mapping
from typing import Any, Literal

from microbench.cli import doctor
from microbench.console.si import counted
from microbench.verify.results import Failure, Result


class BoardResult(Result):
    """A quick run of one board, held against others of its kind; a finding is a failure."""

    folder = "doctor"
    kind: Literal["board"] = "board"
    run: str  # the id of the run that was judged
    reference: str | None = None  # what it was held against
    constants: int

    @property
    def subject(self) -> str:
        return "board"

    @property
    def told(self) -> str:
        against = self.reference or "its data sheet"
        return f"{counted(len(self.failures), 'finding')} in {counted(self.constants, 'constant')}, against {against}"


def verify(device: str, where: Mapping[str, Any], wait: bool = True) -> BoardResult:
    """Measure `device` ('cuda:N') for half a minute. `where` is results.where() of it. Raises SmscopeError."""
    examined = doctor.examine_here(device, wait)
    return BoardResult(
        **where,
        nvrtc=examined.run.environment.nvrtc or "",
        cubins=(),
        failures=tuple(Failure(what=each.about, reason=each.text) for each in examined.findings),
        run=examined.run.environment.run_id,
        reference=examined.reference.told if examined.reference else None,
        constants=len(examined.profile.constants),
    )
