"""Which constants of a run are worth another campaign: those in doubt, and those that disturbed sweeps did not give."""

from collections.abc import Iterable

from microbench.probe import Probe
from microbench.results import derive
from microbench.results.doubt import Doubt, doubts
from microbench.results.record import Run

MOST = 3  # campaigns more, where a run is to be as good as it gets


def doubted(run: Run, probes: Iterable[Probe]) -> tuple[Doubt, ...]:
    """The constants of these probes that this run leaves in doubt, and that a repeat on an idle machine may settle."""
    mine = tuple(probes)
    profile = derive.reduce_runs([run], mine).profile
    disturbed = {row.probe for row in run.records if row.disturbed}
    lacking = (
        Doubt(constant.name, probe.name, "no value came of a disturbed sweep")
        for probe in mine
        for constant in probe.constants
        if probe.name in disturbed and constant.name not in profile
    )
    return (*doubts(profile), *lacking)
