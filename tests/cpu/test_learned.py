"""What timings teach is derived once, and anew where anything that it comes from has changed."""

from pathlib import Path

import pytest

from attention.choose import learned, learned_file, learned_key
from attention.timed import timings
from microbench.errors import DataWarning
from microbench.results.profile import Profile
from smscope.cli import main
from tests.cpu.attention_profiles import host_profile, saved
from tests.cpu.test_timings import LONG_F32, timing


@pytest.fixture
def profile(data: Path) -> Profile:
    timings.write(timing(0.01))
    return host_profile().model_copy(update={"gpu": "host-test-4c"})


@pytest.fixture
def derived(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The machines whose timings were read, row by row."""
    seen: list[str] = []
    whole = learned.derive
    monkeypatch.setattr(
        learned, "derive", lambda profile, *counted: seen.append(profile.gpu) or whole(profile, *counted)
    )
    return seen


def in_a_new_process(profile: Profile) -> learned.Learned:
    learned._kept.clear()
    return learned._of(profile)


def test_a_second_process_reads_what_the_first_derived(profile, derived):
    first, second = in_a_new_process(profile), in_a_new_process(profile)
    assert first == second and first.corrections.of_class[LONG_F32].timings == 1 and len(derived) == 1


def test_what_lies_beside_the_profiles_is_read_before_anything_is_derived(profile, derived):
    path = learned.write(profile)
    assert path is not None and path.parent.name == "corrections"
    derived.clear()
    assert in_a_new_process(profile).corrections and not derived


def test_a_timing_more_or_another_constant_is_derived_anew(profile, derived):
    in_a_new_process(profile)
    timings.write(timing(0.02))
    assert in_a_new_process(profile).corrections.of_class[LONG_F32].timings == 2 and len(derived) == 2
    first, *others = profile.constants
    faster = profile.model_copy(update={"constants": (first.model_copy(update={"value": first.value * 2}), *others)})
    in_a_new_process(faster)
    assert len(derived) == 3


@pytest.mark.parametrize("told", ["", "{", '{"key": "KEY"}', '{"key": "KEY", "exact": 3}'])
def test_a_file_that_cannot_be_read_is_derived_anew(profile, derived, told):
    good = in_a_new_process(profile)
    file = learned_file._kept() / f"{profile.gpu}.json"
    file.write_text(told.replace("KEY", learned_key.key_of(profile)))
    assert in_a_new_process(profile) == good and len(derived) == 2


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ("", "it is no JSON, or was cut short"),
        ("garbage", "it is no JSON, or was cut short"),
        ('{"key":"KEY', "it is no JSON, or was cut short"),
        ('{"key":"another"', "it is no JSON, or was cut short"),
        ('{"key":"KEY","schema_version":3}', "its schema_version is none that this release reads"),
    ],
)
def test_a_file_beside_the_profiles_that_cannot_be_read_is_named_by_every_process(profile, derived, told, says):
    good, file = in_a_new_process(profile), learned.write(profile)
    assert file is not None
    file.write_text(told.replace("KEY", learned_key.key_of(profile)))
    for _ in range(2):
        learned.faults.forget()
        with pytest.warns(DataWarning, match=f"{file.name}: {says}; `.*profile` writes it again. This is left") as said:
            assert in_a_new_process(profile) == good
        assert len(said) == 1


@pytest.mark.filterwarnings("error::microbench.errors.DataWarning")
def test_a_file_beside_the_profiles_that_is_out_of_date_is_no_fault(profile, derived):
    file = learned.write(profile)
    assert file is not None
    file.write_text(file.read_text().replace(learned_key.key_of(profile), "another"))
    assert in_a_new_process(profile) == in_a_new_process(profile)


def test_where_nothing_can_be_kept_it_is_derived_each_time(profile, derived, monkeypatch, tmp_path):
    (tmp_path / "a file").write_text("")
    monkeypatch.setattr(learned_file, "_kept", lambda: tmp_path / "a file" / "below")
    assert in_a_new_process(profile) == in_a_new_process(profile) and len(derived) == 2


def code_in_a_new_process() -> str:
    learned_key._code.cache_clear()
    return learned_key._code()


def test_the_hash_of_the_code_is_remembered_while_no_file_of_it_has_changed(tmp_path, monkeypatch):
    monkeypatch.setattr(learned_key.paths, "cache", lambda: tmp_path)
    reads: list[str] = []
    whole = learned_key.hashed
    monkeypatch.setattr(learned_key, "hashed", lambda variant: reads.append(variant) or whole(variant))
    first = code_in_a_new_process()
    assert reads and all(
        Path(path).is_file() for path, *_ in learned_key.json.loads(learned_key._memory().read_text())["read"]
    )
    reads.clear()
    assert code_in_a_new_process() == first and not reads
    known = learned_key.json.loads(learned_key._memory().read_text())
    known["read"][-1][2] += 1  # as if a header had been written since
    for told in (learned_key.json.dumps(known), "{", "[]", '{"read": 3}', '{"read": [], "code": "?"}'):
        reads.clear()
        learned_key._memory().write_text(told)
        assert code_in_a_new_process() == first and reads
    learned_key._code.cache_clear()


def test_another_copy_of_the_package_has_a_memory_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(learned_key.paths, "cache", lambda: tmp_path)
    mine = learned_key._memory()
    monkeypatch.setattr(learned_key, "KERNELS", tmp_path / "attention" / "kernels")
    assert learned_key._memory() != mine


def test_a_bad_line_is_named_by_every_process(profile, derived):
    with timings.files(profile.gpu)[0].open("a") as file:
        file.write("{\n")
    for _ in range(2):
        learned.faults.forget()
        with pytest.warns(DataWarning, match="line 2: not valid JSON"):
            in_a_new_process(profile)
    assert len(derived) == 1


def test_the_verb_profile_writes_it_beside_each_profile(profile, data):
    file = saved(data, profile)
    with pytest.raises(SystemExit) as left:
        main(["profile"])
    assert not left.value.code and [each.name for each in (data / "corrections").iterdir()] == [file.name]


def test_a_machine_without_timings_leaves_nothing(data):
    bare = host_profile()
    assert learned.write(bare) is None and in_a_new_process(bare) == learned.Learned()
    assert not learned_file._kept().exists()
