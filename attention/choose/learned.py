"""What the timings on file teach the model about a machine: derived once, kept on disk, looked up by each choice.

Predicted over measured, the mean over the timings of near problems, is an efficiency. Timings are those of
comparisons (data/attention) and of campaigns (data/campaigns); one of our own kernel counts only while the code is what
was timed (timed.identity, timed.cubins). Reading and judging them takes seconds, so a file beside the profiles holds
what came of it (choose.learned_file), under a key of all that it came from; where no file has that key, it is derived
again, and kept in the user's cache. Campaigns judge choices: of them counts what was there when `smscope profile` wrote
that file.
"""

from collections import deque
from collections.abc import Mapping
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
from attention.choose.learned_key import Stamp, key_of, key_of_calls, stamps
from attention.choose.machine import published_for, takes_unmeasured
from attention.choose.rates import HOST
from attention.choose.samples import known, sample, samples
from attention.errors import UnsupportedError
from attention.problem import AttentionProblem
from attention.timed import campaigns, cubins, timings
from attention.timed.observed import Observed, of_newest_torch
from attention.timed.timing import Timing
from attention.variant import Variant, every_shipped
from microbench import faults, paths
from microbench.machine.arch import by_name
from microbench.results.profile import Profile, advising, available

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
    if not (timings.files(profile.gpu) or campaigns.files(profile.gpu)):
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


def derive(profile: Profile, counted: Mapping[str, int] | None = None) -> Learned:
    """What the timings on file teach, from the timings themselves; of campaigns so many bytes by file, or all."""
    counted = campaigns.sizes(profile.gpu) if counted is None else counted
    lines, wrong = _lines(profile, counted)
    now = known(profile)
    newest = set(map(id, of_newest_torch([line.timed for line in lines])))
    found: list[Sample] = []
    for line in lines:
        shown = sample(line.timed, now) if id(line.timed) in newest else None
        if isinstance(shown, Sample):
            found.append(shown)
        elif shown is not None:
            wrong[line.file][line.number] = shown
    left_out: dict[str, tuple[str, ...]] = {}
    for file, of in wrong.items():
        left_out[file.name] = (*left_out.get(file.name, ()), *(f"line {line}: {of[line]}" for line in sorted(of)))
    # What campaigns alone timed, 1,900 builds, is not compiled anew where a text has changed: see _renew_cubins.
    compared = set(timings.files(profile.gpu))
    timed = {line.timed.variant for line in lines if line.timed.cubins and line.file in compared}
    for variant in now.variants.values():
        if variant.builds and variant.path in timed:
            left_out[cubins.place_of(variant).name] = cubins.faults(variant)
    compares = {"smscope", "torch"} <= {each.variant.owner for each in found}
    left_out = {name: said for name, said in left_out.items() if said}
    read = {file.name: counted[file.name] for file in wrong if file not in compared}
    return Learned(calibrated(found), duels(found), compares, left_out, read)


@dataclass(frozen=True)
class _Line:
    """A timing, and where it stands."""

    file: Path
    number: int
    timed: Observed


def _lines(profile: Profile, counted: Mapping[str, int]) -> tuple[list[_Line], dict[Path, dict[int, str]]]:
    """Every timing of a machine, and of each file what is wrong with the lines that are none."""
    read = {file: timings.observed(file) for file in timings.files(profile.gpu)}
    for file in campaigns.files(profile.gpu):
        if file.name in counted:
            read[file] = campaigns.observed(file, counted[file.name])
    lines = [_Line(file, number, timed) for file, (found, _) in read.items() for number, timed in found]
    return lines, {file: wrong for file, (_, wrong) in read.items()}


def efficiencies(
    profile: Profile, rows: tuple[Timing, ...], variants: tuple[Variant, ...] | None = None
) -> Corrections:
    """What timings that still hold say of this profile's predictions; one from which nothing follows does not count.

    Tiles differ in what keeps them from their bound, and so do head dims, masks and lengths.
    """
    return calibrated(samples(map(timings.of, timings.best_known(rows)), known(profile, variants)))


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
    roots = roots or tuple(paths.data_roots())
    now = tuple(stamps((*timings.places(profile.gpu, roots), *learned_file.places(profile.gpu, roots))))
    kept = _kept.get(profile.gpu)
    if kept is None or kept.stamps != now or not kept.is_of(profile):
        learned = _on_disk_or_derived(profile) if now else Learned()
        kept = _kept[profile.gpu] = _Kept(deque([profile], KEPT_EQUALS), now, learned)
        files = (*timings.files(profile.gpu), *campaigns.files(profile.gpu))
        for file in (*files, *map(cubins.place_of, every_shipped())):
            faults.leave_out(file, kept.learned.left_out.get(file.name, ()))
    return kept.learned


def _on_disk_or_derived(profile: Profile) -> Learned:
    key = key_of_calls(profile)
    learned = learned_file.read(profile.gpu, key)
    if learned is None:
        learned = derive(profile, learned_file.campaigns_of(profile.gpu))
        learned_file.keep(profile.gpu, key, learned)
    return learned
