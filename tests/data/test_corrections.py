"""What timings teach is derived, and lies beside the profiles as derived from the rows that are committed."""

import pytest

from attention.choose import learned, learned_file, learned_key
from attention.timed import timings
from microbench import paths
from microbench.results.profile import Profile, available

TIMED = [gpu for gpu in available() if timings.files(gpu)]


@pytest.mark.parametrize("gpu", TIMED)
def test_the_file_is_what_the_timings_teach(gpu: str, monkeypatch: pytest.MonkeyPatch) -> None:
    profile = Profile.load(gpu)
    monkeypatch.setattr(learned_file, "_kept", lambda: paths.SHIPPED / "nowhere")
    found = learned_file.read(gpu, learned_key.key_of(profile))
    assert found is not None, "run `make profile`: timings, profile or model have changed"
    assert found == learned.derive(profile) and not found.left_out


def test_no_file_is_left_of_a_machine_that_is_gone() -> None:
    assert sorted(file.stem for file in (paths.SHIPPED / learned_file.FOLDER).glob("*.json")) == sorted(TIMED)
