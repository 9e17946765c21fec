"""Profiles for tests that need one: with made-up numbers, or of the first run that was committed of a machine."""

from microbench import paths
from microbench.probes import discover
from microbench.results import derive, record
from microbench.results.profile import Profile
from microbench.results.profile_constant import ProfileConstant


def constant(name: str, value: float, spread: float = 0.001, unit: str = "cycles", **more: object) -> ProfileConstant:
    """A constant of six campaigns whose interval is `value` give or take `spread` of it."""
    cell = {"low": value * (1 - spread), "high": value * (1 + spread), "n": 6, "runs": ("run",), "probe": "probe"}
    return ProfileConstant.model_validate({"name": name, "value": value, "unit": unit, "method": "nvrtc"} | cell | more)


def profile(*constants: ProfileConstant, gpu: str = "h100-sxm-80gb", arch: str = "sm90a") -> Profile:
    """A profile of a machine with this slug and architecture."""
    return Profile(gpu=gpu, name=gpu.upper(), arch=arch, sm_count=132, clock_hz=1.98e9, constants=constants)


def shipped(gpu: str) -> tuple[Profile, record.Run]:
    """A machine's first committed run, and what follows from it; later ones may be the reader's own."""
    run = record.read(min((paths.SHIPPED / "runs" / gpu).glob("*.jsonl")))
    return derive.reduce_runs([run], discover()).profile, run
