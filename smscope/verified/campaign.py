"""Part after part, each on file before the next begins, until all are done or the next one does not fit."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from microbench.console.progress import watching
from microbench.errors import BusyError, EnvironmentLacks, sentence
from smscope.verified.budget import Budget
from smscope.verified.part import Part
from smscope.verified.record import AnyResult, Done, Gap, Record, Verdict

Keep = Callable[[Record, Done | None], object]


@dataclass(frozen=True)
class Ended:
    """What there is now, the parts that are left, and how many this call did."""

    record: Record
    left: tuple[Part, ...]
    tried: int


def go_on(
    begun: Record,
    parts: Sequence[Part],
    gaps: Sequence[Gap],
    budget: Budget,
    usual: Callable[[Part], float],
    keep: Keep,
) -> Ended:
    """Do the parts that `begun` has not decided, in order.

    `keep` gets the record before the first part, and after each with what that part gave; it must have stored both when
    it returns. What a part raises is its reason; BusyError, what `keep` raises and Ctrl-C end the call, and lose
    nothing that was kept.
    """
    planned = tuple(part.key for part in parts)
    record = begun.model_copy(update={"planned": planned, "gaps": tuple(gaps)})
    todo = [part for part in parts if part.key not in record.decided]
    keep(record, None)
    with watching(len(parts)) as watcher:
        watcher.finished(len(parts) - len(todo))
        for at, part in enumerate(todo):
            if not budget.fits(usual(part)):
                return Ended(record, tuple(todo[at:]), at)
            watcher.doing(part.step, part.name)
            done = _done(part, budget.clock)
            record = record.with_part(done)
            keep(record, done)
            watcher.finished()
    record = record.model_copy(update={"finished": True})
    keep(record, None)
    return Ended(record, (), len(todo))


def _done(part: Part, clock: Callable[[], float]) -> Done:
    began, result, reason = clock(), None, part.lacks
    broken = False
    if not part.lacks:
        try:
            result = part.run()
        except BusyError:
            raise
        except EnvironmentLacks as error:
            reason = sentence(error)
        except Exception as error:  # whatever it is, the other parts go on, and this one is named
            reason, broken = sentence(error), True
    return Done(
        step=part.step,
        name=part.name,
        verdict=_verdict(result, broken),
        reason=reason,
        seconds=round(clock() - began, 3),
        ended_utc=datetime.now(UTC).isoformat(timespec="seconds"),
        result=result,
    )


def _verdict(result: AnyResult | None, broken: bool) -> Verdict:
    if result is None:
        return "broken" if broken else "lacking"
    return "confirmed" if result.ok else "refuted"
