"""Profile.load('host'): this CPU's own profile, or another CPU's, said aloud."""

from pathlib import Path

import pytest

from microbench.errors import UnknownGpu
from microbench.machine.cpu import host_slug
from microbench.results.profile import Profile
from tests.cpu.attention_profiles import saved


def put(data: Path, slug: str) -> None:
    saved(data, Profile(gpu=slug, name=slug, arch="host", sm_count=2))


def test_host_is_this_cpu_where_it_was_measured(data: Path) -> None:
    put(data, "host-another-8c")
    put(data, host_slug())
    assert Profile.load("host").gpu == host_slug()


def test_another_cpu_stands_in_and_is_named(data: Path) -> None:
    put(data, "host-another-8c")
    put(data, "h100-sxm-80gb")
    with pytest.warns(UserWarning, match="host-another-8c stands for it; `make bench` measures this one"):
        assert Profile.load("host").gpu == "host-another-8c"


def test_a_gpu_never_stands_in_for_a_cpu(data: Path) -> None:
    put(data, "h100-sxm-80gb")
    with pytest.raises(UnknownGpu, match="'host'"):
        Profile.load("host")
    with pytest.raises(UnknownGpu, match="'host-another-8c'"):
        Profile.load("host-another-8c")
