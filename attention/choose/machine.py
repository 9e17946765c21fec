"""Whose profile judges a call: this machine's own, or else the nearest shipped one, said aloud."""

import os
import warnings
from dataclasses import dataclass, replace
from functools import cache

from microbench import paths
from microbench.errors import DataWarning, UnknownGpu
from microbench.machine.arch import CUDA, by_compute_capability
from microbench.machine.nvml import board, slug, uuid_sha256
from microbench.published import load
from microbench.published.boards import Known, known
from microbench.published.kinds import kind_of, of_kind
from microbench.published.names import listed, matching
from microbench.results.profile import Profile, advising, available, with_board

HOST = "host"
UNMEASURED_VARIABLE = "SMSCOPE_UNMEASURED"
ON = ("1", "true", "yes", "on")
BENCH = paths.typed("bench")


@dataclass(frozen=True)
class MachineProfile:
    """A profile, and a sentence where it is not this machine's own."""

    profile: Profile
    caution: str | None = None
    known: Known | None = None  # of a GPU that is named, and of which there is no profile
    published: Profile | None = None  # of its kind, where nothing of its architecture was measured


def named_machine(asked: str) -> MachineProfile:
    """The profile that explains what would run on a GPU by the name that somebody typed: 'a100', 'rtx4090', 'sm89'.

    Its own profile, else the one profile whose name it begins or is part of, else what a GPU of that kind would go by.
    Raises UnknownGpu, DataError.
    """
    gpus = [gpu for gpu in available() if not gpu.startswith(HOST)]
    near = matching(asked, ((gpu,) for gpu in gpus))
    if asked in near or not near:
        try:
            return MachineProfile(Profile.load(asked))
        except UnknownGpu:
            return _unmeasured(asked, gpus)
    if len(near) > 1:
        raise UnknownGpu(f"{asked!r} may be {listed(near)}; name one of them.")
    return MachineProfile(
        Profile.load(near[0]), f"no profile is called {asked!r}, so the nearest name, {near[0]}, is taken"
    )


def nameable(incomplete: str) -> list[str]:
    """Completions of a GPU's name for the shell: profiles, published kinds and boards, architectures."""
    tables = load()
    slugs = (gpu.slug for gpu in tables.gpus if gpu.slug)
    names = (*available(), *(kind.kind for kind in tables.kinds), *slugs, *CUDA)
    return [name for name in dict.fromkeys(names) if name.startswith(incomplete)]


def _unmeasured(asked: str, profiles: list[str]) -> MachineProfile:
    try:
        about = known(asked)
    except UnknownGpu as error:
        there = ", ".join(profiles) or "none yet"
        raise UnknownGpu(f"{error} Profiles: {there}; `smscope bench` writes one.") from None
    boards = listed(board.name for board in about.boards) if about.boards else f"any GPU of {about.arch}"
    gpu = about.boards[0].slug if len(about.boards) == 1 else asked
    # Without a document that gives the number of SMs, 1: there is no constant by which anything could be predicted.
    found = of_board(boards, gpu, about.arch, about.sm_count or 1, f"{asked!r} ({boards})")
    kind = None if found.profile.constants else kind_of(about)
    return replace(found, known=about, published=of_kind(kind) if kind else None)


def published_for(profile: Profile) -> Profile | None:
    """The published constants of a profile's kind, where it has no constants of its own and its kind is known."""
    return None if profile.constants or profile.arch == HOST else _published_of(profile.gpu)


@cache
def _published_of(gpu: str) -> Profile | None:
    try:
        kind = kind_of(known(gpu))
    except UnknownGpu:
        return None
    return of_kind(kind) if kind else None


def takes_unmeasured() -> bool:
    """Whether the caller wants kernels of ours that nobody has timed on this kind of GPU: SMSCOPE_UNMEASURED=1."""
    return _is_on(os.environ.get(UNMEASURED_VARIABLE, ""))


@cache
def _is_on(asked: str) -> bool:
    """Asked by every choice, and said once where it is neither."""
    if asked.lower() not in (*ON, "", "0", "false", "no", "off"):
        warnings.warn(f"{UNMEASURED_VARIABLE}={asked} is neither 1 nor 0, and counts as 0.", DataWarning, stacklevel=2)
    return asked.lower() in ON


@cache
def machine_profile(device: str = "cpu") -> MachineProfile:
    """The profile for a torch device type ('cpu', 'cuda' or 'cuda:N'). Raises UnknownArch for a GPU before sm_70.

    Every machine gets one: its own, else a shipped neighbour's, else an empty one, by which nothing can be predicted.
    """
    if device.startswith("cuda"):
        return _of_gpu(device)
    from microbench.machine.cpu import host_slug

    return _of_host(host_slug())


def _of_host(slug: str) -> MachineProfile:
    try:
        own = Profile.advice(slug)
        if own.arch == HOST:
            return MachineProfile(own)
    except UnknownGpu:
        pass
    others = [profile for profile in advising() if profile.arch == HOST]
    for other in sorted(others, key=lambda profile: (profile.gpu != HOST, profile.gpu)):
        caution = f"this CPU ({slug}) has no profile, so {other.gpu} stands for it; `{BENCH}` measures this one"
        # Under its own name, for a neighbour's timings bear out nothing here.
        return MachineProfile(other.model_copy(update={"gpu": slug}), caution)
    empty = Profile(gpu=slug, name="unmeasured CPU", arch=HOST, sm_count=os.cpu_count() or 1)
    return MachineProfile(empty, f"this CPU ({slug}) has no profile and none is shipped; `{BENCH}` measures it")


def _of_gpu(device: str) -> MachineProfile:
    import torch

    facts = torch.cuda.get_device_properties(device)
    name, sm_count = torch.cuda.get_device_name(device), facts.multi_processor_count
    arch = by_compute_capability(facts.major, facts.minor).name
    who, uuid = f"this GPU ({name}, {sm_count} SMs)", getattr(facts, "uuid", None)
    own_board = board(uuid_sha256(f"GPU-{uuid}")) if uuid else ""
    return of_board(name, slug(name, facts.total_memory), arch, sm_count, who, own_board)


def of_board(name: str, gpu: str, arch: str, sm_count: int, who: str, own_board: str = "") -> MachineProfile:
    """The GPU's own profile, else its kind's, else that of the GPU of its architecture with the nearest number of SMs.

    `name` is the driver's, `gpu` the slug of its kind, and `who` what a sentence calls it.
    """
    profiles = [profile for profile in advising() if profile.arch == arch]
    for profile in profiles:
        if profile.name == name and profile.sm_count == sm_count:
            return MachineProfile(with_board(profile, own_board) if own_board else profile)
    who = f"{who} has no profile"
    if profiles:
        nearest = min(profiles, key=lambda profile: (abs(profile.sm_count - sm_count), profile.gpu))
        caution = f"{who}, so {nearest.gpu} stands for it; `{BENCH}` measures this one"
        return MachineProfile(_with_sms(nearest, sm_count) if sm_count > 1 else nearest, caution)
    empty = Profile(gpu=gpu, name=name, arch=arch, sm_count=sm_count)
    return MachineProfile(empty, f"{who} and none of {arch} is shipped; `{BENCH}` measures it")


def _with_sms(profile: Profile, sm_count: int) -> Profile:
    """A neighbour's profile for another number of SMs: tensor cores come with SMs, memory does not."""
    share = sm_count / profile.sm_count
    constants = tuple(
        each.model_copy(update={end: getattr(each, end) * share for end in ("value", "low", "high")})
        if each.name.endswith("_flops_per_s")
        else each
        for each in profile.constants
    )
    return profile.model_copy(update={"sm_count": sm_count, "constants": constants})
