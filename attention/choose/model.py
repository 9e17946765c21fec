"""predict(): demands of a variant's tiles over the measured rates of a profile give seconds, and what bounds them.

    seconds = sum over phases of the longest of the phase's terms        (terms of a phase overlap, phases follow)
    term    = demand of one full tile / rate x full tiles' worth of scores that the busiest unit works through
              or the sum of such, of a chain whose links wait for each other

A kernel that describes its warps or warpgroups is predicted by them instead (choose.warps, choose.warpgroups): how they
share an SM decides more than any rate of a pipe.

A call that takes two launches, one after the other, takes twice the time of one.

A unit is an SM of a GPU or a logical core of a CPU. Every rate is a constant of the profile; none is typed here. What a
profile lacks, or holds in doubt (measured on a busy machine), makes a variant unpredicted, with the constant's name:
never a guess.
"""

from attention.choose.lengths import UNKNOWN, Lengths
from attention.choose.prediction import SECONDS, Efficiency, Prediction, Term, Unpredicted
from attention.choose.rates import launch_of, machine_of, rate_of
from attention.choose.shares import share_of_busiest
from attention.choose.warpgroups.predicted import predicted as by_warpgroups
from attention.choose.warps.predicted import can as can_by_warps
from attention.choose.warps.predicted import predicted as by_warps
from attention.problem import AttentionProblem
from attention.tile import WarpgroupTile, WarpTile
from attention.variant import Config, Variant
from microbench.results.profile import Profile


def predict(
    profile: Profile,
    problem: AttentionProblem,
    variant: Variant,
    config: Config,
    efficiency: Efficiency | None = None,
    lengths: Lengths = UNKNOWN,
    l2_written: bool = False,
) -> Prediction:
    """Predict one configuration on one machine, by its sequences' lengths where they are known. Raises Unpredicted.

    `l2_written`: as behind a memset, with an L2 full of what others changed.
    """
    if variant.tile is None:
        raise Unpredicted("nothing is known of the inside of this kernel")
    if (launched := variant.launch_of(problem)) is not problem:
        return predict(profile, launched, variant, config, efficiency, lengths, l2_written).twice()
    efficiency = efficiency or Efficiency()
    residents = variant.residents(problem, config) if variant.residents else None
    if isinstance(residents, WarpgroupTile):
        return by_warpgroups(profile, problem, residents, efficiency, lengths, l2_written)
    if isinstance(residents, WarpTile) and can_by_warps(profile):
        return by_warps(profile, problem, residents, efficiency, lengths, l2_written)
    tile = variant.tile(problem, config)
    share = share_of_busiest(problem, tile, profile.sm_count, lengths)
    machine = machine_of(profile)
    alone = share.busy_units == 1
    terms: list[Term] = []
    chains: dict[tuple[str, str], list[Term]] = {}
    longest: dict[str, float] = {}
    total = 0.0
    for demands, times in ((tile.demands, share.tiles), (tile.edge, share.rows)):
        for name, phase, amount, constant, resident_bytes, of in demands:
            rate = machine.rates.get((constant, alone)) or rate_of(machine, constant, resident_bytes, alone)
            seconds = amount * times / rate.per_unit_s
            term = Term(name, phase, seconds, rate.constant, rate.value)
            for chain in of:
                chains.setdefault((chain, phase), []).append(term)
            if of:
                continue
            terms.append(term)
            total += seconds
            if seconds > longest.get(phase, 0.0):
                longest[phase] = seconds
    for (chain, phase), links in chains.items():
        seconds, most = sum(map(SECONDS, links)), max(links, key=SECONDS)
        terms.append(Term(chain, phase, seconds, most.constant, most.rate, tuple(links)))
        longest[phase] = max(seconds, longest.get(phase, 0.0))
    launch = launch_of(machine, tile.kernels)
    terms += launch
    seconds = (sum(longest.values()) + sum(map(SECONDS, launch))) / efficiency.value + efficiency.overhead_seconds
    bound = max(terms, key=SECONDS)
    return Prediction(
        seconds=seconds,
        bound_by=bound.term,
        terms=tuple(terms),
        cycles=seconds * machine.clock_hz if machine.clock_hz else None,
        efficiency=efficiency,
        unhidden_seconds=total / efficiency.value,
    )
