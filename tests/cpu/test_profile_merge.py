"""A user's own profile lies over the shipped one, constant by constant."""

from pathlib import Path

import pytest

from microbench import paths
from microbench.results.profile import Profile
from tests.cpu.attention_profiles import saved
from tests.data.profiles import constant, profile


@pytest.fixture
def roots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    shipped, own = tmp_path / "shipped", tmp_path / "own"
    for root in (shipped, own):
        root.mkdir()
    monkeypatch.setattr(paths, "data_roots", lambda: [shipped, own])
    return shipped, own


def test_a_quick_run_does_not_hide_what_is_shipped(roots: tuple[Path, Path]) -> None:
    saved(roots[0], profile(constant("a", 1.0), constant("b", 2.0)))
    saved(roots[1], profile(constant("a", 9.0, flags=("quick",)), constant("c", 3.0, flags=("quick",))))
    assert {c.name: c.value for c in Profile.load("h100-sxm-80gb").constants} == {"a": 1.0, "b": 2.0, "c": 3.0}


def test_a_full_run_of_ones_own_counts_before_what_is_shipped(roots: tuple[Path, Path]) -> None:
    saved(roots[0], profile(constant("a", 1.0), constant("b", 2.0, flags=("2 campaigns",))))
    saved(roots[1], profile(constant("a", 9.0, flags=("throttled:power-cap",)), constant("b", 4.0, flags=("quick",))))
    assert {c.name: c.value for c in Profile.load("h100-sxm-80gb").constants} == {"a": 9.0, "b": 4.0}
