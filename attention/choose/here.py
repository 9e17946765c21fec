"""Whether the GPU of a profile is in this machine, and what a timing taken on it now would be of: driver and torch."""

from dataclasses import dataclass

from microbench.errors import UnknownArch
from microbench.machine import driver
from microbench.machine.arch import by_compute_capability
from microbench.machine.nvml import slug
from microbench.results.profile import Profile


@dataclass(frozen=True)
class Here:
    """A GPU by its slug, the release of its driver, and torch's version, CUDA build included."""

    gpu: str
    driver: str
    torch: str


def here_of(profile: Profile) -> Here | None:
    """The GPU that a profile judges; None where torch sees no such GPU. A neighbour's profile has not its name."""
    try:
        import torch
    except ImportError:
        return None
    if not torch.cuda.is_available():
        return None
    facts = [torch.cuda.get_device_properties(index) for index in range(torch.cuda.device_count())]
    alike = [each for each in facts if (_arch(each.major, each.minor), each.multi_processor_count) == _of(profile)]
    found = min(alike, key=lambda each: bool(each.name != profile.name), default=None)
    release = driver.release()
    if found is None or release is None:
        return None
    gpu = profile.gpu if found.name == profile.name else slug(found.name, found.total_memory)
    return Here(gpu, release, str(torch.__version__))


def _of(profile: Profile) -> tuple[str, int]:
    return profile.arch, profile.sm_count


def _arch(major: int, minor: int) -> str | None:
    try:
        return by_compute_capability(major, minor).name
    except UnknownArch:
        return None
