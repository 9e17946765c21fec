"""What the timings on file teach the model about a machine: derived once, kept on disk, looked up by each choice.

Predicted over measured, the median over the timings of the nearest problems, is an efficiency. A timing of our own
kernel counts only while the code is what was timed (timed.identity, timed.cubins). Reading and judging 3,000
timings takes half a second, so a file beside the profiles holds what came of it (choose.learned_file), under a key
of all that it came from; where no file has that key, it is derived again, and kept in the user's cache.
"""

from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from attention.choose import learned_file, tunings
from attention.choose.calibration import Duel, Sample, calibrated, duels
from attention.choose.candidates import Refusal
from attention.choose.choose import Choice, choose
from attention.choose.classes import representative
from attention.choose.corrections import Corrections
from attention.choose.learned_file import Learned
from attention.choose.learned_key import Stamp, key_of, stamps
from attention.choose.machine import published_for, takes_unmeasured
from attention.choose.model import predict
from attention.choose.prediction import Unpredicted
from attention.choose.rates import HOST
from attention.errors import UnsupportedError
from attention.problem import AttentionProblem
from attention.timed import cubins, timing_faults, timings
from attention.timed.identity import text_sha256
from attention.timed.timing import Timing
from attention.variant import Config, Variant, every_shipped
from microbench import faults, paths
from microbench.machine.arch import by_name
from microbench.results.profile import Profile, advising, available
from microbench.results.record import DISTURBANCES

KEPT_EQUALS = 8  # profiles of a machine that equal each other: its own, and what others have read


def of_machine(profile: Profile) -> Corrections:
    """What timings on this kind of machine say; derived again where a file has changed.

    A GPU whose own timings do not compare our kernels with torch's takes those of the nearest GPU of its architecture.
    A DataWarning names each line that cannot be right, once for each file.
    """
    return _taught(profile)[1].corrections


def choice_on(
    profile: Profile,
    problem: AttentionProblem,
    *,
    passes: str = "forward",
    only: str | None = None,
    withheld: tuple[Refusal, ...] = (),
) -> Choice:
    """The choice by all that timings on this kind of machine say, those of `smscope tune` first.

    Raises ProblemError, UnsupportedError.
    """
    unmeasured = takes_unmeasured()
    return choose(
        profile,
        problem,
        passes=passes,
        only=only,
        withheld=withheld,
        efficiencies=of_machine(profile),
        unmeasured=unmeasured,
        duels=duels_of_machine(profile),
        published=published_for(profile) if unmeasured or only else None,
        tuning=tunings.tuning_of(profile, problem) if passes == "forward" else None,
    )


def choice_of_call(profile: Profile, problem: AttentionProblem, *, only: str | None = None) -> Choice:
    """As a call chooses: for the class of its problem, or for that alone where nothing serves the class.

    Raises UnsupportedError.
    """
    with suppress(UnsupportedError):
        return choice_on(profile, representative(problem), only=only)
    return choice_on(profile, problem, only=only)


def timed_on(profile: Profile) -> str:
    """The machine whose timings of_machine takes for a profile's."""
    return _taught(profile)[0]


def _taught(profile: Profile) -> tuple[str, Learned]:
    """The machine whose timings count, and what they teach: looked up once, since each look asks for files' times."""
    roots = tuple(paths.data_roots())
    own = profile.gpu, _of(profile, roots)
    if profile.arch == HOST or own[1].compares:
        return own
    every = _of_arch(profile.arch, roots)
    siblings = sorted(every, key=lambda each: (abs(each.sm_count - profile.sm_count), each.gpu))
    return next(((each.gpu, found) for each in siblings if (found := _of(each, roots)).compares), own)


def duels_of_machine(profile: Profile) -> tuple[Duel, ...]:
    """The duels of our kernel and torch's that are on file for a profile's machine: none but a CPU's."""
    return _of(profile).duels if profile.arch == HOST else ()


def write(profile: Profile) -> Path | None:
    """Derive what a machine's timings teach, beside the profiles; None where it has none. Raises DataError.

    Kernels whose text has changed since they were timed are compiled before, to see whether their cubins have.
    """
    if not timings.files(profile.gpu):
        return None
    _renew_cubins(profile)
    return learned_file.write(profile.gpu, key_of(profile), derive(profile))


def write_of(*gpus: str) -> None:
    """The same for machines by name; of those without a profile or timings nothing is written. Raises DataError.

    GPUs of one architecture share a file of cubins: it is up to date for all before any of them is derived.
    """
    profiles = [Profile.advice(gpu) for gpu in gpus if gpu in available()]
    for profile in profiles:
        _renew_cubins(profile)
    for profile in profiles:
        write(profile)


def _renew_cubins(profile: Profile) -> None:
    if profile.arch != HOST:
        cubins.renew(by_name(profile.arch), timings.read(profile.gpu)[0])


def derive(profile: Profile) -> Learned:
    """What the timings on file teach, from the timings themselves."""
    known, samples, left_out = _known(profile), list[Sample](), dict[str, tuple[str, ...]]()
    timed: set[str] = set()
    for file in timings.files(profile.gpu):
        sound, wrong = timings.judged(file)
        counted = set(map(id, timings.best_known(sound.values())))
        for line, timing in sound.items():
            found = _judged(profile, timing, known) if id(timing) in counted else None
            timed |= {timing.variant} if timing.cubin_sha256 else set()
            if isinstance(found, Sample):
                samples.append(found)
            elif found is not None:
                wrong[line] = found
        left_out[file.name] = (*left_out.get(file.name, ()), *(f"line {line}: {wrong[line]}" for line in sorted(wrong)))
    for variant in known.variants.values():
        if variant.builds and variant.path in timed:
            left_out[cubins.place_of(variant).name] = cubins.faults(variant)
    compares = {"smscope", "torch"} <= {each.variant.owner for each in samples}
    left_out = {name: said for name, said in left_out.items() if said}
    return Learned(calibrated(samples), duels(samples), compares, left_out)


def efficiencies(
    profile: Profile, rows: tuple[Timing, ...], variants: tuple[Variant, ...] | None = None
) -> Corrections:
    """What timings that still hold say of this profile's predictions; one from which nothing follows does not count.

    Tiles differ in what keeps them from their bound, and so do head dims, masks and lengths.
    """
    known = _known(profile, variants)
    judged = (_judged(profile, timing, known) for timing in timings.best_known(rows))
    return calibrated(each for each in judged if isinstance(each, Sample))


@dataclass(frozen=True)
class _Known:
    """The variants that a timing may name, by its passes, and the cubins that those of ours compile to."""

    variants: dict[tuple[str, str], Variant]
    cubins: dict[str, frozenset[str]]

    def of(self, timing: Timing) -> Variant | None:
        """The variant that was timed, while its code is what was timed."""
        variant = self.variants.get((timing.passes, timing.variant))
        if variant is None or variant.owner == "torch":
            return variant
        same_text = timing.source_sha256 == text_sha256(variant.path)
        same_code = timing.cubins and self.cubins[variant.path].issuperset(timing.cubins)
        return variant if same_text or same_code else None


def _known(profile: Profile, variants: tuple[Variant, ...] | None = None) -> _Known:
    every = every_shipped() if variants is None else variants
    # torch's kernels are timed as peers, and chosen as variants.
    peers = {(each.passes, f"peer/{each.name}"): each for each in every if profile.arch in each.archs}
    own = {variant.path: cubins.current(variant) for variant in every if variant.owner == "smscope"}
    return _Known({(variant.passes, variant.path): variant for variant in every} | peers, own)


def _judged(profile: Profile, timing: Timing, known: _Known) -> Sample | str | None:
    """What a timing shows; None where it no longer holds or nothing is predicted, a sentence where it is faulty."""
    variant = known.of(timing)
    if variant is None or set(timing.flags) & set(DISTURBANCES):
        return None
    if fault := timing_faults.of_config(timing, variant):
        return fault
    config = Config(tuple((axis, timing.config[axis]) for axis, _ in variant.space))
    try:
        promised = predict(profile, timing.problem, variant, config).seconds
    except Unpredicted:
        return None
    except Exception as error:  # a line is advice: no call fails for what a formula makes of it
        return f"nothing can be predicted of it ({type(error).__name__}: {error})"
    sample = Sample(variant, config, timing.problem, promised, timing.seconds, timing.low, timing.high, timing.run)
    return timing_faults.of_efficiency(promised / timing.seconds) or sample


@cache
def _of_arch(arch: str, _roots: tuple[Path, ...]) -> tuple[Profile, ...]:
    """Read once from the same folders: a choice asks for them each time, and reading takes longer than choosing."""
    return tuple(each for each in advising() if each.arch == arch)


@dataclass(frozen=True)
class _Kept:
    """What was learned when the profile and the machine's files were these. `profiles` are equal, the last ones met."""

    profiles: deque[Profile]
    stamps: tuple[Stamp, ...]
    learned: Learned

    def is_of(self, profile: Profile) -> bool:
        """Whether this is of an equal profile: told by identity, but for the first time that this one is met.

        Comparing two profiles constant by constant takes longer than a choice.
        """
        if any(profile is each for each in self.profiles):
            return True
        if profile != self.profiles[0]:
            return False
        self.profiles.append(profile)
        return True


_kept: dict[str, _Kept] = {}


def _of(profile: Profile, roots: tuple[Path, ...] | None = None) -> Learned:
    now = tuple(stamps(timings.places(profile.gpu, roots or tuple(paths.data_roots()))))
    kept = _kept.get(profile.gpu)
    if kept is None or kept.stamps != now or not kept.is_of(profile):
        learned = _on_disk_or_derived(profile) if now else Learned()
        kept = _kept[profile.gpu] = _Kept(deque([profile], KEPT_EQUALS), now, learned)
        for file in (*timings.files(profile.gpu), *map(cubins.place_of, every_shipped())):
            faults.leave_out(file, kept.learned.left_out.get(file.name, ()))
    return kept.learned


def _on_disk_or_derived(profile: Profile) -> Learned:
    key = key_of(profile)
    learned = learned_file.read(profile.gpu, key)
    if learned is None:
        learned = derive(profile)
        learned_file.keep(profile.gpu, key, learned)
    return learned
