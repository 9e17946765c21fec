"""An Explanation: a choice with what it stands on, which prints itself (plain with str, in tables with rich).

It goes to JSON and back.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import TypeAdapter
from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.table import Table
from rich.text import Text

from attention.choose.choose import Choice
from attention.choose.constant_used import ConstantUsed
from attention.choose.explain import tables
from attention.choose.explain.known import known_parts
from attention.choose.explain.published import published_parts
from attention.choose.explain.tuning import timed
from attention.choose.published.ranking import PublishedRanking
from attention.seen import flops_seen
from microbench.console.si import written
from microbench.published.boards import Known

LOG_COLUMNS = 140
UNMEASURED = (
    "No time can be predicted. The kernels that serve the call keep their fixed order, and the first one is picked."
)
BY_PUBLISHED = "No pick rests on published constants; the kernels that serve the call keep their fixed order."
TILE_BY_PUBLISHED = "A kernel of ours was asked for; published constants picked its configuration, and no timing did."


@dataclass(frozen=True)
class Explanation:
    """A choice with what it stands on. `cautions` say what the reader must not overlook."""

    choice: Choice
    constants: tuple[ConstantUsed, ...]
    notes: tuple[str, ...]
    cautions: tuple[str, ...]
    known: Known | None = None  # of a GPU that nobody measured
    published: PublishedRanking | None = None  # of ours, by published constants of such a GPU
    stand_in: str = ""  # the first of the cautions, where the profile is another GPU's
    untimed: str = ""  # what one `smscope tune` would decide, where it has not

    def to_json(self, indent: int | None = None) -> str:
        """Everything as JSON."""
        return EXPLANATION.dump_json(self, indent=indent).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> "Explanation":
        """A stored explanation, validated."""
        return EXPLANATION.validate_json(text)

    def headline(self) -> str:
        """One sentence: the pick, its predicted time, and what bounds it."""
        choice = self.choice
        config = "" if not choice.pick.config.values else f" ({choice.pick.config})"
        if choice.pick.prediction is None:
            why = f"not predicted, because {choice.pick.unpredicted}"
        else:
            prediction = choice.pick.prediction
            speed = flops_seen(choice.problem) / prediction.seconds
            time = f"{written(prediction.seconds, 's')} ({written(speed, 'FLOP/s')})"
            why = f"predicted {time}, bound by {prediction.bound_by}"
        found = choice.tuning.of(choice.pick) if choice.tuning is not None else None
        if found is not None:
            why = f"timed {written(found.seconds, 's')}, {why}"
        return f"{choice.problem} on {choice.gpu}: {choice.pick.variant}{config}, {why}"

    def __str__(self) -> str:
        console = Console(width=LOG_COLUMNS, highlight=False, color_system=None)
        with console.capture() as captured:
            console.print(self)
        return captured.get().rstrip()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Group(*self._parts())

    def _unpredicted(self) -> str:
        """What the pick rests on, where no time is predicted."""
        if self.published is None:
            return UNMEASURED
        return TILE_BY_PUBLISHED if self.choice.pick.owner == "smscope" else BY_PUBLISHED

    def _parts(self) -> Iterator[Text | Table]:
        yield Text(self.headline() + ".")
        for caution in self.cautions:
            yield Text(f"Caution: {caution}.")
        if self.choice.fallback:
            yield Text(f"Fallback: {self.choice.fallback}; strict=True raises instead.")
        if self.choice.nearest:
            yield Text(f"A tuned kernel would serve the same call {self.choice.nearest}.")
        for note in self.notes:
            yield Text(f"Note: {note}.")
        if self.untimed:
            yield Text(f"Tune: {self.untimed}.")
        if self.known is not None:
            if self.choice.pick.prediction is None:
                yield Text(self._unpredicted())
            if self.published is not None:
                yield from published_parts(self.published)
            yield from known_parts(self.known)
        if self.choice.pick.prediction is not None:
            yield tables.terms(self.choice.pick)
            yield tables.constants(self.constants)
        if self.choice.tuning is not None:
            yield timed(self.choice.tuning, self.choice.pick)
        yield tables.candidates(self.choice)
        if self.choice.refused:
            yield tables.refusals(self.choice)


EXPLANATION: TypeAdapter[Explanation] = TypeAdapter(Explanation)
