"""A user's own profile lies over the shipped one, constant by constant."""

from pathlib import Path

import pytest

from microbench import paths
from microbench.results.profile import Profile, ProfileConstant


def profile(*constants: ProfileConstant) -> Profile:
    return Profile(gpu="h100-test", name="NVIDIA H100", arch="sm90a", sm_count=132, constants=constants)


def constant(name: str, value: float, *flags: str) -> ProfileConstant:
    return ProfileConstant(
        name=name,
        value=value,
        low=value,
        high=value,
        unit="cycles",
        n=6,
        runs=("r",),
        probe="p",
        method="nvrtc",
        flags=flags,
    )


@pytest.fixture
def roots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    shipped, own = tmp_path / "shipped", tmp_path / "own"
    for root in (shipped, own):
        (root / "profiles").mkdir(parents=True)
    monkeypatch.setattr(paths, "data_roots", lambda: [shipped, own])
    return shipped, own


def save(root: Path, written: Profile) -> None:
    (root / "profiles" / f"{written.gpu}.json").write_text(written.model_dump_json())


def test_a_quick_run_does_not_hide_what_is_shipped(roots: tuple[Path, Path]) -> None:
    save(roots[0], profile(constant("a", 1.0), constant("b", 2.0)))
    save(roots[1], profile(constant("a", 9.0, "quick"), constant("c", 3.0, "quick")))
    loaded = Profile.load("h100-test")
    assert {c.name: c.value for c in loaded.constants} == {"a": 1.0, "b": 2.0, "c": 3.0}


def test_a_full_run_of_ones_own_counts_before_what_is_shipped(roots: tuple[Path, Path]) -> None:
    save(roots[0], profile(constant("a", 1.0), constant("b", 2.0, "2 campaigns")))
    save(roots[1], profile(constant("a", 9.0, "throttled:power-cap"), constant("b", 4.0, "quick")))
    assert {c.name: c.value for c in Profile.load("h100-test").constants} == {"a": 9.0, "b": 4.0}
