"""What a choice costs the host, by what `python -m tests.gpu.host_time data/attention/<gpu>-host-time.json` recorded.

    first choice      of a class of problems that was never asked for: at most 2 ms
    new shape         of a class that was: at most 100 us
    known shape       nothing: no choice is made, and what a call costs stands beside torch's in tests/data

The newest run that was of committed code counts. Its yardstick, a fixed piece of Python beside the calls, tells a slow
host: 320 us on the development machine.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from microbench import paths
from microbench.errors import DataError

MOST_US: Mapping[str, float] = {"choice for a new class": 2000.0, "choice for a new length of a known class": 100.0}


class Row(BaseModel):
    """What is read of a row, which has more."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    call: str
    host_us: float
    yardstick_us: float | None = None
    commit: str | None = None
    dirty: bool = True


ROWS: TypeAdapter[tuple[Row, ...]] = TypeAdapter(tuple[Row, ...])


@dataclass(frozen=True)
class HostCost:
    """One figure, and the most that is asked."""

    row: Row
    most_us: float

    @property
    def met(self) -> bool:
        return self.row.host_us <= self.most_us

    def __str__(self) -> str:
        """One line."""
        said = "met" if self.met else "not met"
        beside = f", yardstick {self.row.yardstick_us:.0f} us" if self.row.yardstick_us else ""
        commit = f", at {self.row.commit[:7]}" if self.row.commit else ""
        return f"{self.row.call}: {self.row.host_us:.0f} us (asked {self.most_us:.0f}{beside}{commit}): {said}"


def host_costs(gpu: str) -> tuple[HostCost, ...]:
    """The newest on file of a GPU's host, by what was asked; none where nothing is. Raises DataError."""
    file = paths.SHIPPED / "attention" / f"{gpu}-host-time.json"
    if not file.is_file():
        return ()
    try:
        every = ROWS.validate_json(file.read_bytes())
    except ValidationError as error:
        raise DataError(f"{file.name} cannot be read ({error}); git has it as it was committed.") from error
    newest = {row.call: row for row in every if not row.dirty}
    return tuple(HostCost(newest[call], most) for call, most in MOST_US.items() if call in newest)
