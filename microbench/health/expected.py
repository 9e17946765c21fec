"""What a run should have given, and what of a reference it can be held against."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from microbench.health.reference import Reference
from microbench.probe import Probe
from microbench.results.profile_constant import ProfileConstant
from microbench.results.record import Run


def expected(run: Run, reference: Reference, probes: Sequence[Probe]) -> Mapping[str, Sequence[str]]:
    """The constants, by probe, that a run of these probes gives on a board of the reference's kind.

    A probe that came later is in no older run, and what an interrupted run lacks says nothing. A quick run has no soak,
    and leaves points out, and with them some constants (Constant.quick).
    """
    told = run.environment
    if not (reference.same_kind and run.finished):
        return {}
    known = set(told.probes) or {row.probe for row in run.records}
    asked = {probe.name for probe in probes if probe.name in (told.only or known)}
    left_out: set[str] = set()
    if told.quick:
        asked -= {probe.name for probe in probes if probe.campaigns is not None}
        left_out = {each.name for probe in probes for each in probe.constants if not each.quick}
    found: dict[str, list[str]] = {}
    for each in reference.profile.constants:
        if each.method != "numba" and each.probe in asked and each.name not in left_out:
            found.setdefault(each.probe, []).append(each.name)
    return found


def by_the_same_instrument(reference: Reference, run_id: str, probes: Sequence[Probe]) -> Reference:
    """Without the constants of probes that measured something else at the time of one of the two."""
    since = {probe.name: probe.since for probe in probes}

    def comparable(constant: ProfileConstant) -> bool:
        begin = since.get(constant.probe, "")
        return (max(constant.runs, default="") >= begin) == (run_id >= begin)

    kept = tuple(filter(comparable, reference.profile.constants))
    return replace(reference, profile=reference.profile.model_copy(update={"constants": kept}))
