"""Physics against publications: why a published number cannot be right, by the very bounds that our own rows meet.

Where quantities.csv says that a published quantity is one of our constants, the bound of that constant's own probe is
asked at the machine of the board (machines.py), through microbench.bounds as for a row of ours, and two figures of one
source must stand in the order of results/order.py. What no probe measures has its bounds in unmeasured.py. The rest is
a row against itself: its unit, its sign, its own range.

A fact whose own flags disown it (Fact.trusted is False) is not asked. The numbers that are known to be wrong,
data/published/rejected.csv, must each get a reason here, or lie outside our bands.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations, product

import numpy as np

from microbench.bounds import held, loosest
from microbench.machine.arch import HOST
from microbench.point import Curves, NoValue, Point
from microbench.probe import Constant, Metric, Probe
from microbench.published import Published
from microbench.published.facts import OTHER_METHOD, Fact, Quantity, Rejected
from microbench.published.machines import converted, machine_of
from microbench.published.unmeasured import unmeasured
from microbench.results.order import in_order
from microbench.results.profile_constant import ProfileConstant

_SUFFIX_UNITS = {
    "_cycles": {"cycles"},
    "_ns": {"ns"},
    "_us": {"us"},
    "_gbs": {"GB/s"},
    "_gibs": {"GiB/s"},
    "_tbs": {"TB/s"},
    "_mbs": {"MB/s"},
    "_gbs_per_sm": {"GB/s/SM"},
    "_bytes_per_clk_sm": {"B/clk/SM"},
    "_bytes_per_clk": {"B/clk"},
    "_bytes": {"B"},
    "_kib": {"KiB"},
    "_mib": {"MiB"},
    "_mhz": {"MHz"},
    "_tflops": {"TFLOPS", "TOPS"},
    "_gflops": {"GFLOPS"},
    "_fma_per_clk_sm": {"FMA/clk/SM"},
    "_flop_per_clk_sm": {"FLOP/clk/SM", "OP/clk/SM"},
    "_inst_per_clk_sm": {"thread-inst/clk/SM", "inst/clk/SM"},
}
_RANGE = re.compile(r"\((?:min|range) ([\d.]+)(?:, max |-)([\d.]+)")
LEVEL = 1.5  # of the flat curve that says where a constant of a probe is read


def problems(published: Published, probes: Sequence[Probe]) -> tuple[str, ...]:
    """A sentence for every trusted fact that cannot be right, and for every board and source without a row."""
    found = []
    sources = {source.id for source in published.sources}
    for fact in published.facts:
        if fact.trusted:
            why = reasons(fact, published, probes)
            found += [f"{fact.gpu}, {fact.quantity} = {fact.value:g}: {each}" for each in why]
    cited = [(row.gpu, row.source) for row in published.facts] + [(row.gpu, row.source) for row in published.attention]
    for gpu, source in dict.fromkeys(cited):
        if published.gpu(gpu) is None:
            found.append(f"{gpu} has no row in gpus.csv.")
        if source not in sources:
            found.append(f"{source} has no row in sources.csv.")
    return tuple(dict.fromkeys((*found, *out_of_order(published))))


def reasons(fact: Fact | Rejected, published: Published, probes: Sequence[Probe]) -> tuple[str, ...]:
    """Why this number cannot be right, whatever its flags say; empty where nothing speaks against it."""
    return tuple(dict.fromkeys((*_of_itself(fact), *_of_physics(fact, published, tuple(probes)))))


def _of_itself(fact: Fact | Rejected) -> Iterator[str]:
    if fact.value is None:
        return
    suffix = max((s for s in _SUFFIX_UNITS if fact.quantity.endswith(s)), key=len, default="")
    if suffix and fact.unit not in _SUFFIX_UNITS[suffix]:
        yield f"its name ends in {suffix}, its unit is {fact.unit}."
    if fact.value < 0:
        yield "it is negative."
    spread = _RANGE.search(fact.conditions)
    if spread and not float(spread[1]) <= fact.value <= float(spread[2]):
        yield f"it lies outside its own range, {spread[1]} to {spread[2]}."


def _of_physics(fact: Fact | Rejected, published: Published, probes: tuple[Probe, ...]) -> Iterator[str]:
    machine = machine_of(fact.gpu, published)
    if machine is None or fact.value is None:
        return
    ours = [(rule, found) for rule in _rules(fact, published) if (found := _bounded(rule.constant, probes))]
    for rule, (metric, points) in ours:
        value = converted(fact, rule, published)
        why = None if value is None else loosest(metric, value, machine, points).why
        if why:
            yield f"as {rule.constant}, {why}."
    other = None if ours else unmeasured(fact)
    why = held(other, fact.value, machine, Point()).why if other else None
    if why:
        yield f"{why}."


def _rules(fact: Fact | Rejected, published: Published) -> list[Quantity]:
    """How the fact becomes constants of ours; what a rule needs to tell two of them apart changes no bound."""
    return [rule for rule in published.quantities if rule.quantity == fact.quantity]


@cache
def _bounded(name: str, probes: tuple[Probe, ...]) -> tuple[Metric, tuple[Point, ...]] | None:
    """The metric whose value this constant is, and the points that it may be read at; None where there is none."""
    for probe in (probe for probe in probes if probe.archs != HOST):  # a CPU has constants of the same names
        for constant in probe.constants:
            if constant.name == name and (points := _read_at(probe, constant)):
                return probe.metric(constant.metric), points
    return None


def _read_at(probe: Probe, constant: Constant) -> tuple[Point, ...]:
    """Where a flat curve of the probe gives its level back; nowhere where the constant is no value of its metric.

    A knee and a slope are none. A plateau may lie at any point.
    """
    points = tuple(probe.points())
    if constant.unit and constant.unit != probe.metric(constant.metric).unit:
        return ()
    try:
        reduced = constant.reduce(Curves(points, np.full((1, len(points)), LEVEL)))
    except NoValue:  # a flat curve has only one plateau
        return points
    if not np.allclose(reduced.per_campaign, LEVEL):
        return ()
    return reduced.points or points


def out_of_order(published: Published) -> Iterator[str]:
    """Constants of one board that contradict one another by every figure that one source gives of them."""
    groups: dict[tuple[str, str], dict[str, list[ProfileConstant]]] = {}
    for fact in published.facts:
        for rule in _rules(fact, published) if fact.trusted else ():
            other = OTHER_METHOD.intersection(fact.flags) - {rule.needs}
            value = converted(fact, rule, published)
            if not rule.compared or rule.needs not in (*fact.flags, "") or other or value is None:
                continue
            of_source = groups.setdefault((fact.gpu, fact.source), {})
            of_source.setdefault(rule.constant, []).append(_as_ours(rule.constant, value, fact))
    for (gpu, source), constants in groups.items():
        for one, two in combinations(constants.values(), 2):
            said = [in_order(pair)[1] for pair in product(one, two)]
            if all(said):
                yield f"{gpu}, {source}: {said[0][0]}"


def _as_ours(name: str, value: float, fact: Fact) -> ProfileConstant:
    cell = {"name": name, "value": value, "low": value, "high": value, "unit": fact.unit, "n": 1}
    return ProfileConstant.model_validate(cell | {"runs": (), "probe": fact.source, "method": "nvrtc"})
