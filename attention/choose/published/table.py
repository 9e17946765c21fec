"""What FlashAttention-4's own table of tuning constants says of a problem, beside the order in which we rank ours."""

from dataclasses import dataclass

from attention.problem import AttentionProblem
from attention.variant import Config
from microbench.published import load
from microbench.published.boards import known
from microbench.results.profile import Profile

SOURCE = "FA4SRC"
OF_32 = 32  # exponentials among which ours counts its polynomials


@dataclass(frozen=True)
class TheirChoice:
    """Of one head dim and mask: CTAs of a product, registers by role, and polynomials among 32 exponentials.

    polynomial is None where their file gives a period of fragments, and not how many there are.
    """

    board: str
    key: str
    ctas: int
    polynomial: float | None
    softmax: int
    correction: int
    other: int

    def __str__(self) -> str:
        share = "a share of polynomials that it does not say"
        if self.polynomial is not None:
            share = f"{self.polynomial:g} polynomials of {OF_32} exponentials" if self.polynomial else "no polynomials"
        pair = "a pair of CTAs" if self.ctas == 2 else "one CTA"
        return (
            f"FlashAttention-4's own table on {self.board} at {self.key}: {pair}, {share}, registers "
            f"{self.softmax} softmax, {self.correction} correction, {self.other} other ({SOURCE})."
        )

    def same_share(self, config: Config) -> bool:
        """Whether a configuration of ours takes as many polynomials."""
        return self.polynomial is not None and dict(config.values).get("polynomial") == self.polynomial


def their_choice(profile: Profile, problem: AttentionProblem) -> TheirChoice | None:
    """None where their table has no row of such a head dim; its keys know of masks causal and full."""
    mask = "causal" if problem.causal else "full"
    prefix = f"fa4_fwd_hd{problem.head_dim}_{mask}_"
    capability = known(profile.arch).compute_capability
    boards = {gpu.name for gpu in load().gpus if gpu.compute_capability == capability}
    rows = [fact for fact in load().facts if fact.source == SOURCE and fact.gpu in boards]
    found = {fact.quantity.removeprefix(prefix): fact for fact in rows if fact.quantity.startswith(prefix)}
    if "ctas_of_a_product" not in found:
        return None
    number = {name: fact.value or 0.0 for name, fact in found.items()}
    share = number.get("polynomial_share")
    return TheirChoice(
        found["ctas_of_a_product"].gpu,
        f"head dim {problem.head_dim}, {mask}",
        int(number["ctas_of_a_product"]),
        None if share is None else share * OF_32,
        *(int(number[f"registers_{role}"]) for role in ("softmax", "correction", "other")),
    )
