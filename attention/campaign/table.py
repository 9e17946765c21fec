"""The table of choosers: what each costs on a set of problems, beside the floor, and the verdict that follows.

The limits are those that were set before any timing: from constants alone a mean regret of 1.0 %, or 0.3 % above the
floor where that is more, and 5 % at the worst; a mean error of 15 %, 25 % in each class, and nowhere a factor of 2;
with timings of other problems 0.5 % without a problem and its twins, 2.0 % without its head dim.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from attention.campaign import choosers
from attention.campaign.regret import Errors, Judged, Regrets, choices, errors, floor, interval, regrets
from attention.choose import constants
from microbench.results.profile import Profile

MEASURED, ONES, FA4, ONE_TILE = "measured constants", "every constant 1", "FlashAttention-4's tiles", "one tile each"
TWINS, HEAD_DIM = "and timings, but of twins", "and timings, but of its head dim"
MEAN, ABOVE_FLOOR, WORST = 0.010, 0.003, 0.05
ERROR, CLASS_ERROR, FACTOR = 0.15, 0.25, 2.0
WITHOUT_TWINS, WITHOUT_HEAD_DIM = 0.005, 0.02


@dataclass(frozen=True)
class Other:
    """Constants of somebody else for the same GPU's model. `rival`: measured ones must be better; else not worse."""

    name: str
    profile: Profile
    rival: bool = True


@dataclass(frozen=True)
class Line:
    """A chooser. `against` is the 95 % interval of the measured constants' mean regret minus its own."""

    regrets: Regrets
    against: tuple[float, float] | None = None
    rival: bool = False


@dataclass(frozen=True)
class Table:
    """A set of problems, of all our kernels, an architecture's or one: floor, choosers, errors of the predictions."""

    kernels: str
    problems: int
    floor: Regrets
    lines: tuple[Line, ...]
    errors: Errors

    def line(self, name: str) -> Line:
        return next(each for each in self.lines if each.regrets.name == name)

    @property
    def allowed(self) -> float:
        """The mean regret that constants alone may have."""
        return max(MEAN, self.floor.mean + ABOVE_FLOOR)

    @property
    def faults(self) -> tuple[str, ...]:
        """What the limits refuse, in words; none where the model stands."""
        found, off = self.line(MEASURED).regrets, self.errors
        said = [
            (found.mean > self.allowed, f"mean regret {found.mean:.2%} above {self.allowed:.2%}"),
            (found.worst > WORST, f"worst regret {found.worst:.1%} above {WORST:.0%}"),
            (not off.mean <= ERROR, f"mean error {off.mean:.1%} above {ERROR:.0%}"),
            (not off.worst_factor <= FACTOR, f"a prediction off by {off.worst_factor:.2f} times"),
        ]
        said += [(mean > CLASS_ERROR, f"error of {kind} {mean:.1%}") for kind, mean in off.of_class.items()]
        for name, most in ((TWINS, WITHOUT_TWINS), (HEAD_DIM, WITHOUT_HEAD_DIM)):
            mean = self.line(name).regrets.mean
            said.append((mean > most, f"measured constants {name}: mean regret {mean:.2%} above {most:.1%}"))
        for each in self.lines:
            if each.against is None:
                continue
            low, high = each.against
            told = f"{each.regrets.name} ({low:+.2%} to {high:+.2%})"
            said.append((each.rival and high >= 0, f"not shown to be better than {told}"))
            said.append((not each.rival and low > 0, f"worse than {told}"))
        return tuple(text for wrong, text in said if wrong)


def table(
    profile: Profile,
    problems: Sequence[Judged],
    typed: Sequence[Judged],
    others: Iterable[Other],
    *,
    kernels: str = "",
    each_constant: bool = True,
) -> Table:
    """Every chooser on `problems`, of all kernels, an architecture's or one.

    `typed` is set A, from which one tile each is taken. Timings of other problems are those of both sets.
    """
    mine, a = choices(problems, kernels), choices(typed, kernels)
    measured = regrets(mine, choosers.by_constants(profile), MEASURED)
    lines = [Line(measured)]

    def add(found: Regrets, rival: bool) -> None:
        lines.append(Line(found, interval(measured, found), rival))

    for other in others:
        add(regrets(mine, choosers.by_constants(other.profile), other.name), other.rival)
    add(regrets(mine, choosers.by_constants(constants.ones(profile)), ONES), True)
    add(regrets(mine, choosers.flash_attention_4, FA4), True)
    if a:  # a kernel that is younger than the last set A has no best tile on it
        add(regrets(mine, choosers.one_tile_each(a), ONE_TILE), True)
    every = {str(each.posed): each for each in (*a, *mine)}.values()
    taught = choosers.timings_of(profile, every)
    for name, alike in ((TWINS, choosers.twins), (HEAD_DIM, choosers.of_one_head_dim)):
        lines.append(Line(regrets(mine, choosers.by_timings(profile, taught, alike), name)))
    for constant in choosers.used(profile, mine) if each_constant else ():
        for factor, word in ((0.5, "halved"), (2.0, "doubled")):
            by_it = choosers.by_constants(constants.scaled(profile, constant, factor))
            lines.append(Line(regrets(mine, by_it, f"{constant} {word}")))
    # Errors are of every configuration, of problems that leave no choice as well.
    asked = [each.among(kernels) if kernels else each for each in problems]
    return Table(kernels, len(mine), floor(mine), tuple(lines), errors(asked, choosers.predictor(profile)))
