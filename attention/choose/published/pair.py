"""A pair of blocks beside a single one: what our model says of the two, and what a published comparison of theirs says.

The model has the pair's own term, the latency of its products; what two SMs wait for each other it has not, because no
source gives it. Where the two disagree, the sentence says by how many cycles.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from attention.choose.foreseen import Foreseen
from attention.choose.published.cycles import cycles_of
from attention.problem import AttentionProblem
from microbench.console.si import digits
from microbench.published import load
from microbench.published.boards import known
from microbench.published.facts import Fact
from microbench.results.profile import Profile

TURNS = 2  # of query tiles, which go on at a time: a turn has twice the cycles of its 128 rows


@dataclass(frozen=True)
class PairBeside:
    """Cycles of 128 rows by 128 keys of our best pair and our best single block, and the published `fact`.

    The fact's value is the speed of single CTAs over that of pairs.
    """

    pair: float
    single: float
    fact: Fact

    @property
    def theirs(self) -> float:
        return self.fact.value or 0.0

    @property
    def open_cycles(self) -> float:
        """What the pair would have to take longer for the published ratio."""
        return self.theirs * self.single - self.pair

    def __str__(self) -> str:
        ours = f"a single block is {digits(self.pair / self.single)} times as fast as a pair of blocks by the model"
        said = f"{digits(self.theirs)} by {self.fact.source} on a {self.fact.gpu} ({self.fact.conditions})"
        return (
            f"Pairs: {ours}, {said}. The miss is {self.open_cycles:.0f} cycles of 128 rows by 128 keys, "
            f"{TURNS * self.open_cycles:.0f} of a turn: what a pair's blocks wait for each other, a word from the "
            "other SM before its products and the later of two softmaxes, is no term, for no source gives it."
        )


def pair_beside(profile: Profile, problem: AttentionProblem, ordered: Sequence[Foreseen]) -> PairBeside | None:
    """None where no figure is published, or one of the two has no prediction. `ordered`: of each the fastest first."""
    mask = "causal" if problem.causal else "full"
    quantity = f"fa4_fwd_hd{problem.head_dim}_{mask}_single_over_pair_x"
    capability = known(profile.arch).compute_capability
    boards = {gpu.name for gpu in load().gpus if gpu.compute_capability == capability}
    fact = next((each for each in load().facts if each.quantity == quantity and each.gpu in boards), None)
    pair, single = (_tile(profile, problem, ordered, blocks) for blocks in (2, 1))
    return PairBeside(pair, single, fact) if fact and pair and single else None


def _tile(profile: Profile, problem: AttentionProblem, ordered: Sequence[Foreseen], blocks: int) -> float | None:
    for each in ordered:
        if each.prediction is not None and dict(each.config.values).get("cta_group") == blocks:
            cycles = cycles_of(profile, problem, each.variant, each.config, each.prediction)
            return cycles.tile if cycles else None
    return None
