"""Whose profile judges a call: this machine's own, or else the nearest shipped one, said aloud."""

import os
from dataclasses import dataclass
from functools import cache

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
    """The profile for a torch device type ('cpu', 'cuda' or 'cuda:N'). Raises UnknownGpu for a GPU nobody measured.

    A CPU always gets one: its own, else a shipped CPU's, else an empty profile, by which nothing can be predicted.
    """
    if device.startswith("cuda"):
        return MachineProfile(_of_gpu(device))
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
        return MachineProfile(Profile.load(name), caution)
    empty = Profile(gpu=slug, name="unmeasured CPU", arch=HOST, sm_count=os.cpu_count() or 1)
    return MachineProfile(empty, f"this CPU ({slug}) has no profile and none is shipped; `make bench` measures it")


def _of_gpu(device: str) -> Profile:
    import torch

    name = torch.cuda.get_device_name(device)
    sm_count = torch.cuda.get_device_properties(device).multi_processor_count
    for gpu in available():
        profile = Profile.load(gpu)
        if profile.name == name and profile.sm_count == sm_count:
            return profile
    raise UnknownGpu(f"No profile was measured on a {name} with {sm_count} SMs; run `make bench` on this machine.")
