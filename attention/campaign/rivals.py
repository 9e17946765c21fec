"""Who is timed beside whom: on a problem of floors our pick, our next best and every peer, and on one of use all.

Of floors that is what a call of ours would run, and our next best by prediction. Of use it is every configuration of
ours that is legal, every peer, and the functions that a user calls.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace
from importlib import metadata

from attention.campaign import doors, plan
from attention.campaign.plan import SLOW_FLOPS_PER_S, Job
from attention.campaign.posed import Posed
from attention.campaign.set_use import Used
from attention.choose import learned
from attention.compare.candidates import FLASH_4, Candidate, math, memory_efficient, peers
from attention.errors import UnsupportedError
from attention.problem import AttentionProblem
from attention.timed.timing import PEER
from attention.variant import by_path
from microbench.errors import InputError
from microbench.results.profile import Profile

OTHERS = 2  # of ours beside the pick
JIT_S = 15.0  # of FlashAttention-4's compiler for a class of shapes, for the estimate alone
FLASH_4_MOST = 256  # of head dims, on Hopper


def every() -> tuple[Candidate, ...]:
    """The peers that are installed here."""
    return (*peers(flex=False), memory_efficient())


def without(names: Collection[str]) -> tuple[Candidate, ...]:
    """The peers that are installed here, but for those named. Raises InputError for a name that no peer has."""
    known = {FLASH_4, *(each.name for each in every())}
    strange = [name for name in names if name not in known]
    if strange:
        raise InputError(f"There is no peer {strange[0]!r}; leave out some of {', '.join(sorted(known))}.")
    return tuple(each for each in every() if each.name not in names)


def packages(beside: Iterable[Candidate]) -> dict[str, str]:
    """The versions by which a line's timings are whose: torch's and, where it is a peer, cuDNN's and others'."""
    import torch

    found = {"torch": metadata.version("torch")}
    for peer in beside:
        name = peer.name.removeprefix(PEER)
        if name == "torch_cudnn":
            found["cudnn"] = str(torch.backends.cudnn.version())  # type: ignore[no-untyped-call]
        elif not name.startswith("torch_"):
            found[name] = peer.version
    return found


def jobs_of_use(drawn: Iterable[Used], profile: Profile, beside: tuple[Candidate, ...]) -> tuple[Job, ...]:
    """Every problem, whether a kernel of ours serves it or not, with all that could serve it.

    What torch does without a kernel of its own stands last: it is asked where none of its kernels gave a right result.
    """
    found: list[Job] = []
    compiles = any(each.name == FLASH_4 for each in beside)
    compiled: frozenset[tuple[object, ...]] = frozenset()
    for used in drawn:
        posed = used.posed
        try:
            called = doors.of(posed.problem, profile)
        except UnsupportedError:
            called = ()
        job, picks = plan.job_of(posed, profile), [each.pick for each in called if each.pick]
        slow = posed.flops / SLOW_FLOPS_PER_S
        new = flash_4_classes(posed.problem) - compiled if compiles else frozenset()
        compiled |= new
        found.append(
            replace(
                job,
                predicted_s=job.predicted_s + slow * (len(beside) + len(called)),
                picked=tuple(dict.fromkeys((by_path(each.variant), each.config) for each in picks)),
                peers=(*beside, math()),
                doors=called,
                use=str(used),
                jit_s=JIT_S * len(new),
            )
        )
    return tuple(found)


def jobs(problems: Iterable[Posed], profile: Profile, beside: tuple[Candidate, ...]) -> tuple[Job, ...]:
    """Every problem that a kernel of ours serves, with our pick, our next best, and all of `beside`."""
    found: list[Job] = []
    compiles = any(each.name == FLASH_4 for each in beside)
    compiled: frozenset[tuple[object, ...]] = frozenset()
    for posed in problems:
        try:
            choice = learned.choice_of_call(profile, posed.problem, only="smscope")
        except UnsupportedError:
            continue
        others = [each for each in choice.candidates if each != choice.pick]
        own = (choice.pick, *others[:OTHERS])
        tiles = tuple((by_path(each.variant), each.config) for each in own)
        slow = posed.flops / SLOW_FLOPS_PER_S
        seconds = [each.prediction.seconds if each.prediction else slow for each in own]
        total = sum(seconds) + slow * len(beside)
        new = flash_4_classes(posed.problem) - compiled if compiles else frozenset()
        compiled |= new
        found.append(Job(posed, tiles, total, profile.arch, tiles[:1], beside, jit_s=JIT_S * len(new)))
    return tuple(found)


def flash_4_classes(problem: AttentionProblem) -> frozenset[tuple[object, ...]]:
    """What FlashAttention-4 compiles a Hopper kernel for, as far as problems here differ in it (4.0.0b36).

    None for what it refuses before.
    """
    refused = problem.mask != "none" or problem.sinks or problem.alibi
    if refused or max(problem.head_dim, problem.head_dim_v) > FLASH_4_MOST:
        return frozenset()
    group, windowed = problem.heads_q // problem.heads_kv, problem.window != (-1, -1)
    asked = (problem.causal, windowed, problem.softcap, problem.varlen, problem.ranges)
    return frozenset({(problem.dtype, problem.head_dim, problem.head_dim_v, group, *asked)})
