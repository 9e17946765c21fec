"""What a call of `smscope campaign` asks for: which set, the freeze that it is drawn from, and its problems."""

from collections.abc import Sequence
from dataclasses import dataclass

from attention.campaign import draw, freeze, plan, rivals, rows, set_a, set_floors, set_use
from attention.campaign.freeze import Freeze
from attention.campaign.plan import Job
from attention.campaign.rows import DRAWN, Set
from microbench.errors import InputError
from microbench.machine import stamp
from microbench.results.profile import Profile

WITH_PEERS = ("floors", "use")


@dataclass(frozen=True)
class Asked:
    """What is timed: which set, of a drawn one its freeze, of one with peers those that are left out."""

    which: Set
    frozen: Freeze | None = None
    without: tuple[str, ...] = ()

    def jobs(self, profile: Profile) -> tuple[Job, ...]:
        """Its problems, each with its candidates on a machine."""
        if self.which == "floors":
            return rivals.jobs(set_floors.problems(), profile, rivals.without(self.without))
        if self.frozen is None:
            return plan.jobs(set_a.problems(), profile)
        if self.which == "use":
            return rivals.jobs_of_use(set_use.drawn(self.frozen.commit), profile, rivals.without(self.without))
        return plan.jobs(draw.drawn(self.frozen.commit, set_a.problems()), profile)


def asked_of(which: str, of_freeze: str | None, without: Sequence[str]) -> Asked:
    """What the options name. Raises InputError."""
    named = next((each for each in rows.SETS if each == which), None)
    if named is None:
        raise InputError(f"There is no set {which!r}; use {', '.join(rows.SETS[:-1])} or {rows.SETS[-1]}.")
    if without and named not in WITH_PEERS:
        raise InputError(
            f"--without leaves out peers, which are timed with --set {' and --set '.join(WITH_PEERS)} alone."
        )
    if of_freeze is not None and named not in DRAWN:
        raise InputError(f"--of names the freeze of a set that is drawn, {' or '.join(DRAWN)}; set {named} is typed.")
    return Asked(named, _freeze(named, of_freeze) if named in DRAWN else None, tuple(without))


def _freeze(which: Set, asked: str | None) -> Freeze:
    """The one that is named; else that of today's model, by whose choices its sets are judged, or the only one."""
    if asked is not None:
        return freeze.named(asked)
    every = freeze.freezes()
    now = {gpu: freeze.hashes_of(stamp.ROOT, gpu) for gpu in {each.gpu for each in every}}
    of_today = tuple(each for each in every if not freeze.changed(each, now[each.gpu]))
    meant = of_today or every
    if len(meant) != 1:
        there = ", ".join(each.short for each in meant) or "none; `smscope campaign --freeze GPU` writes one"
        raise InputError(f"Set {which} is drawn from a freeze; name it by --of (there are: {there}).")
    return meant[0]
