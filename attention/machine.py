"""Whose profile judges a call: this machine's own, or else the nearest shipped one, said aloud."""

import os
from dataclasses import dataclass
from functools import cache

from microbench.arch import by_compute_capability
from microbench.clocks import slug
from microbench.errors import UnknownGpu
from microbench.profile import Profile, available

HOST = "host"


@dataclass(frozen=True)
class MachineProfile:
    """A profile, and a sentence where it is not this machine's own."""

    profile: Profile
    caution: str | None = None


@cache
def machine_profile(device: str = "cpu") -> MachineProfile:
    """The profile for a torch device type ('cpu', 'cuda' or 'cuda:N'). Raises UnknownArch for a GPU before sm_70.

    Every machine gets one: its own, else a shipped neighbour's, else an empty one, by which nothing can be predicted.
    """
    if device.startswith("cuda"):
        return _of_gpu(device)
    from microbench.device.cpu import host_slug

    return _of_host(host_slug())


def _of_host(slug: str) -> MachineProfile:
    try:
        return MachineProfile(Profile.load(slug))
    except UnknownGpu:
        pass
    shipped = sorted((name for name in available() if name.startswith(HOST)), key=lambda name: (name != HOST, name))
    for name in shipped:
        caution = f"this CPU ({slug}) has no profile, so that of {name} judges it; `make bench` measures this one"
        # Under its own name, for a neighbour's timings bear out nothing here.
        return MachineProfile(Profile.load(name).model_copy(update={"gpu": slug}), caution)
    empty = Profile(gpu=slug, name="unmeasured CPU", arch=HOST, sm_count=os.cpu_count() or 1)
    return MachineProfile(empty, f"this CPU ({slug}) has no profile and none is shipped; `make bench` measures it")


def _of_gpu(device: str) -> MachineProfile:
    """The GPU's own profile, else that of the shipped GPU of its architecture with the nearest number of SMs."""
    import torch

    facts = torch.cuda.get_device_properties(device)
    name, sm_count = torch.cuda.get_device_name(device), facts.multi_processor_count
    arch = by_compute_capability(facts.major, facts.minor).name
    profiles = [profile for profile in map(Profile.load, available()) if profile.arch == arch]
    for profile in profiles:
        if profile.name == name and profile.sm_count == sm_count:
            return MachineProfile(profile)
    who = f"this GPU ({name}, {sm_count} SMs) has no profile"
    if profiles:
        nearest = min(profiles, key=lambda profile: (abs(profile.sm_count - sm_count), profile.gpu))
        return MachineProfile(nearest, f"{who}, so that of {nearest.gpu} judges it; `make bench` measures this one")
    empty = Profile(gpu=slug(name, facts.total_memory), name=name, arch=arch, sm_count=sm_count)
    return MachineProfile(empty, f"{who} and none of {arch} is shipped; `make bench` measures it")
