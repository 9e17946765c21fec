"""Customers that go round stations: how long a round takes when several of them want the same station.

A closed network of queues by mean value analysis, as Schweitzer approximated it (Bard 1979, Schweitzer 1979; Lazowska
and others, Quantitative System Performance, 1984, section 6.4): a customer that comes to a station finds there each of
the others with the share of time that a round spends there,

    stay  = demand (1 + (customers - 1) stay / round)  =  demand / (1 - (customers - 1) demand / round)
    round = sum of stays + thinking

It has no parameter beside the demands. With one customer a round is the sum of all demands; with many it is the longest
station's.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

NEAR = 1e-3  # of a round, where the iteration ends: Newton leaves about the square of its last step
MOST = 30  # iterations: Newton's take three or four


class Station(NamedTuple):
    """A unit that serves one of its `customers` at a time: cycles that each asks of it in a round."""

    name: str
    demand: float
    customers: float
    constant: str


def round_of(stations: Iterable[Station], thinking: float) -> float:
    """Cycles of a round. `thinking` is spent at no station, beside nobody."""
    return round_among([(each.demand, each.customers - 1) for each in stations if each.demand], thinking)


def round_among(asked: Sequence[tuple[float, float]], thinking: float) -> float:
    """The same by what each station is asked for, which is something, and the others that ask."""
    in_turn, longest = thinking, 0.0
    shared = []
    for demand, others in asked:
        in_turn += demand
        if others:  # who has a station to himself never waits for it
            longest = max(longest, demand * (others + 1))
            shared.append((demand, others * demand, demand * demand * others))
        else:
            thinking += demand
    # From below, where Newton's iteration rises towards the root: the difference is convex and falls.
    found = max(in_turn, longest)
    if not shared:
        return found
    for _ in range(MOST):
        above, slope = thinking - found, -1.0
        for demand, taken, bends in shared:
            free = found - taken
            above += demand * found / free
            slope -= bends / (free * free)
        step = above / slope
        found -= step
        if abs(step) <= NEAR * found:
            break
    return found


def together(own: float, shared: Iterable[float], customers: int, sharers: int) -> float:
    """How long work takes that asks for so much of its own station and of shared ones, cut into many parts.

    Of each of the `sharers` so many parts are under way, and each asks for as much of its own station and of the shared
    ones, whose demands are one sharer's share of them. Between the longest demand, with many parts, and the sum of all,
    with one part of one sharer.
    """
    others = customers * sharers - 1
    asked = [(own, customers - 1), *[(demand / sharers, others) for demand in shared if demand]]
    return round_among(asked, 0.0) / customers


def stay(station: Station, found: float) -> float:
    """Cycles of a round at one station, waiting and served."""
    return stay_among(station.demand, station.customers - 1, found)


def stay_among(demand: float, others: float, found: float) -> float:
    """The same beside so many others."""
    return demand / (1 - others * demand / found)
