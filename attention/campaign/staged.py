"""How many samples each call of a problem gets: the more, the nearer it is to the fastest, and the less sure that is.

    LEAST                every call
    SAMPLES              those that take no more than FAR times the best one's first samples, or BESIDE times those of
                         the best of their own kind, among which they are judged too
    as many as it takes  those within CLOSE of the fastest median, and those named, till that is known to KNOWN

The least median of many calls is lower than any of them: of twenty equals whose medians are known to 1.2 %, the least
lies 2.2 % below what all of them take. Eleven samples of a call of 10 us give just that, of one of 100 us 0.4 % (an
H200, 600 calls that were timed twice in one campaign). So what is close is timed until its error is small beside the
3 % that a verdict asks.
"""

import statistics
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from attention.campaign.plan import SAMPLES
from microbench.measure.alternate import alternate
from microbench.measure.timed import Timed

if TYPE_CHECKING:
    from microbench.device.cuda import CudaDevice

FAR, BESIDE, LEAST = 3.0, 1.25, 2
ENOUGH, ROUNDS_S = 5, 2.0  # samples of any other configuration at the least; seconds of one problem's samples
CLOSE, KNOWN, MOST = 1.05, 0.005, 55
# Of a normal spread: its standard deviation over the distance of its quartiles, and a median's error over a mean's.
OF_QUARTILES, OF_MEDIAN = 0.7413, 1.2533


def staged(
    device: "CudaDevice",
    calls: Mapping[str, Callable[[], Any]],
    seed: str,
    stream: int = 0,
    named: Collection[str] = (),
    kind: Callable[[str], str] = lambda _: "",
) -> dict[str, Timed]:
    """Samples of every call, taken in turns; of those `named` as many as of the fastest. Raises DeviceError.

    `kind` names those of a kind, among which a call is judged as well as among all.
    """
    if not calls:
        return {}
    found = alternate(device, calls, f"{seed} first", stream, LEAST)
    least = {name: min(each.seconds) for name, each in found.items()}
    of_kind: dict[str, float] = {}
    for name, seconds in least.items():
        of_kind[kind(name)] = min(seconds, of_kind.get(kind(name), seconds))
    limit = FAR * min(least.values())
    near = {name for name in calls if least[name] <= max(limit, BESIDE * of_kind[kind(name)])}
    each_round = sum(min(found[name].seconds) for name in near)
    samples = max(ENOUGH, min(SAMPLES, int(ROUNDS_S / each_round)))
    found |= _more(device, calls, found, near, f"{seed} more", stream, samples - LEAST)
    close = closest(found, near) | (near & set(named))
    each_round = sum(_median(found[name]) for name in close)
    further = min(wanted(found[name] for name in close), int(ROUNDS_S / each_round)) - samples
    if further > 0:
        found |= _more(device, calls, found, close, f"{seed} close", stream, further)
    return found


def closest(found: Mapping[str, Timed], among: Collection[str]) -> set[str]:
    """Those whose medians lie within CLOSE of the least one."""
    medians = {name: _median(found[name]) for name in among}
    limit = CLOSE * min(medians.values())
    return {name for name, seconds in medians.items() if seconds <= limit}


def wanted(found: Iterable[Timed]) -> int:
    """Samples by which medians would be known to KNOWN, by how far apart those are that there are."""
    spread = OF_QUARTILES * statistics.median(map(_quartiles, found))
    return min(MOST, round((OF_MEDIAN * spread / KNOWN) ** 2))


def _quartiles(found: Timed) -> float:
    """From a quarter of a call's samples to three, over the median: of two modes, from one to the other."""
    lower, middle, upper = statistics.quantiles(found.seconds, n=4)
    return (upper - lower) / middle


def _median(found: Timed) -> float:
    return statistics.median(found.seconds)


def _more(
    device: "CudaDevice",
    calls: Mapping[str, Callable[[], Any]],
    found: Mapping[str, Timed],
    names: Collection[str],
    seed: str,
    stream: int,
    samples: int,
) -> dict[str, Timed]:
    """So many samples more of those names, behind those that were found."""
    asked = {name: call for name, call in calls.items() if name in names}
    more = alternate(device, asked, seed, stream, samples)
    return {name: _joined(found[name], each) for name, each in more.items()}


def _joined(first: Timed, more: Timed) -> Timed:
    return replace(
        first,
        seconds=first.seconds + more.seconds,
        clocks_mhz=first.clocks_mhz + more.clocks_mhz,
        power_w=first.power_w + more.power_w,
        flags=tuple(sorted({*first.flags, *more.flags})),
    )
