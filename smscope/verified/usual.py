"""How long a part usually takes: the longest that it took on this kind of GPU, else on any, else an allowance."""

from collections.abc import Callable, Iterable

from smscope.verified.part import Part
from smscope.verified.record import Record, Who

# No measurement: what a part is given room for until a run on file says how long it took. The suite takes an H200 90 s;
# Blackwell has twice as many kernels to compile, and what is in doubt is measured up to three times more.
ALLOWED_S = {
    "doctor": 60.0,
    "suite": 300.0,
    "probes": 20.0,
    "wrappers": 60.0,
    "kernels": 120.0,
    "sanitizer": 300.0,
    "peers": 60.0,
}


def usual(records: Iterable[Record], who: Who) -> Callable[[Part], float]:
    """Seconds of a part, by the parts of these runs that were decided and swept the same points.

    A part's key names its problems, so a run that asked for more of them tells as much of those that both have.
    """
    here: dict[str, float] = {}
    elsewhere: dict[str, float] = {}
    for record in records:
        if record.who.quick != who.quick:
            continue
        seconds = here if record.who.gpu == who.gpu else elsewhere
        for part in record.parts:
            if part.decided:
                seconds[part.key] = max(part.seconds, seconds.get(part.key, 0.0))

    def of(part: Part) -> float:
        return 0.0 if part.lacks else here.get(part.key, elsewhere.get(part.key, ALLOWED_S[part.step]))

    return of
