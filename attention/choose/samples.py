"""What each timing on file shows: the model's own promise beside it, while the code is what was timed."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from attention.choose.calibration import Sample
from attention.choose.coefficients.table import BYTES, GRANULE
from attention.choose.lengths import Lengths, presumed, told
from attention.choose.model import predict
from attention.choose.prediction import Unpredicted
from attention.problem import AttentionProblem
from attention.tile import FETCH_BYTES
from attention.timed import cubins, timing_faults
from attention.timed.identity import text_sha256
from attention.timed.named import config_of
from attention.timed.observed import Observed
from attention.timed.timing import PEER
from attention.variant import Config, Variant, every_shipped
from microbench.machine.arch import Arch, by_name
from microbench.results.profile import Profile
from microbench.results.record import DISTURBANCES

BY_TENSOR_MAPS = "sm90a/forward/", "sm100a/forward/"
Asked = tuple[str, Config, AttentionProblem, Lengths, bool]


@dataclass(frozen=True)
class Known:
    """The variants that a timing may name, by its passes, with the texts of ours and the builds of their cubins.

    `promises` are predictions that were made: campaigns time a problem again and again.
    """

    profile: Profile
    arch: Arch
    variants: dict[tuple[str, str], Variant]
    texts: dict[str, str]
    builds: dict[str, Mapping[str, frozenset[cubins.Build]]]
    promises: dict[Asked, float | None] = field(default_factory=dict)

    def of(self, timed: Observed) -> Variant | None:
        """The variant that was timed, while its code is what was timed.

        A kernel of torch's is timed on problems that torch serves in another way as well, by a mask for example.
        """
        variant = self.variants.get((timed.passes, timed.variant))
        if variant is None or _fetched_otherwise(variant, timed):
            return None
        if variant.owner == "torch":
            return variant if variant.refusal(timed.problem, self.arch) is None else None
        builds = self.builds[variant.path]
        if timed.cubins and builds.keys() >= set(timed.cubins):
            return variant if cubins.is_of_todays_builds(timed, self.arch.name, builds) else None
        return variant if timed.text and self.texts[variant.path].startswith(timed.text) else None

    def promise(self, variant: Variant, config: Config, timed: Observed) -> float | None:
        """The model's own seconds of what was timed, as a call predicts them; None where nothing is predicted.

        A call does not know how long its packed sequences are. By those of the timings three warpgroups were corrected
        by 5 % less beside two than by what a call takes them for, and chosen for packings where they are 4 % slower.
        """
        problem = timed.problem
        lengths = presumed(problem) if problem.varlen else told(problem, timed.rows, timed.used)
        asked = variant.path, config, problem, lengths, not timed.l2_read
        if asked not in self.promises:
            try:
                found = predict(self.profile, problem, variant, config, lengths=lengths, l2_written=not timed.l2_read)
                self.promises[asked] = found.seconds
            except Unpredicted:
                self.promises[asked] = None
        return self.promises[asked]


def _fetched_otherwise(variant: Variant, timed: Observed) -> bool:
    """Whether TMA's misses brought in another size, where that is not alike: of rows that end inside of a granule."""
    rows = BYTES * timed.problem.head_dim, BYTES * timed.problem.head_dim_v
    by_maps = variant.path.startswith(BY_TENSOR_MAPS)
    return by_maps and timed.fetch_bytes != FETCH_BYTES and any(each % GRANULE for each in rows)


def known(profile: Profile, variants: tuple[Variant, ...] | None = None) -> Known:
    """What of today's tree a timing on a machine may be of."""
    every = every_shipped() if variants is None else variants
    # Torch's kernels are timed as peers, and chosen as variants.
    peers = {(each.passes, f"{PEER}{each.name}"): each for each in every if profile.arch in each.archs}
    own = [each for each in every if each.owner == "smscope"]
    return Known(
        profile,
        by_name(profile.arch),
        {(variant.passes, variant.path): variant for variant in every} | peers,
        {variant.path: text_sha256(variant.path) for variant in own},
        {variant.path: cubins.builds_of(variant) for variant in own},
    )


def sample(timed: Observed, of: Known) -> Sample | str | None:
    """What a timing shows; None where it no longer holds or nothing is predicted, a sentence where it is faulty."""
    variant = of.of(timed)
    if variant is None or set(timed.flags) & set(DISTURBANCES):
        return None
    if fault := timing_faults.of_config(timed.config, variant):
        return fault
    try:
        config = config_of(variant, timed.problem, timed.config)
        promised = of.promise(variant, config, timed)
    except Exception as error:  # a line is advice: no call fails for what a formula makes of it
        return f"nothing can be predicted of it ({type(error).__name__}: {error})"
    if promised is None:
        return None
    found = Sample(variant, config, timed.problem, promised, timed.seconds, timed.low, timed.high, timed.run)
    return timing_faults.of_efficiency(promised / timed.seconds) or found


def samples(every: Iterable[Observed], of: Known) -> Iterator[Sample]:
    """Of those from which something follows."""
    found = (sample(each, of) for each in every)
    return (each for each in found if isinstance(each, Sample))
