"""A timing is of a cubin: it holds while this tree compiles to it, and texts may change."""

import pytest

from attention.choose import learned, learned_key, samples
from attention.timed import compiled_here, cubins, identity, timings
from attention.timed.timing import Timing
from attention.variant import by_path
from microbench.compile import Cubin
from microbench.errors import DataWarning
from microbench.machine.arch import by_name
from microbench.results.profile import Profile
from tests.cpu.timing_rows import made_up

HOPPER = "sm90a/forward/warp_specialised"
CONFIG = {"tile_keys": 128, "warpgroups": 2, "stages": 2, "q_in_registers": 0}
GPU = "h200-sxm-141gb"
PROFILE = Profile.load(GPU)


def row(cubin: str, text: str) -> Timing:
    fields = {"gpu": GPU, "shape": (1, 16, 16, 4096, 4096, 128, 128), "dtype": "bfloat16", "config": CONFIG}
    return made_up(1e-3, HOPPER, **fields, source_sha256=text, cubin_sha256=cubin)


@pytest.fixture
def nvrtc(data, monkeypatch):
    """What the compiler answers: a cubin and a version for whatever text there is."""
    answers = {"cubin": "a" * 64, "version": "12.9.86", "text": "first"}

    def compile_all(_sources):
        compiled = object.__new__(Cubin)
        object.__setattr__(compiled, "sha256", answers["cubin"])
        object.__setattr__(compiled, "nvrtc", answers["version"])
        object.__setattr__(compiled, "code_sha256", answers.get("code", answers["cubin"]))
        return (compiled,)

    monkeypatch.setattr(cubins, "compile_all", compile_all)
    monkeypatch.setattr(cubins, "installed", lambda wanted: answers["version"].startswith(wanted))
    for room in (cubins, samples):
        monkeypatch.setattr(room, "text_sha256", lambda _: answers["text"])
    return answers


def holds(timing: Timing) -> bool:
    return bool(learned.efficiencies(PROFILE, (timing,)))


def renew(*rows: Timing) -> None:
    cubins.renew(by_name("sm90a"), rows)


def test_while_the_text_is_what_was_timed_nobody_compiles(nvrtc):
    assert holds(row("b" * 64, "first")) and not holds(row("b" * 64, "another"))


def test_a_text_that_compiles_to_what_was_timed_loses_no_timing(nvrtc):
    timed = row("a" * 64, "before the file was renamed")
    assert not holds(timed)
    renew(timed)
    assert holds(timed)
    nvrtc["text"] = "renamed once more"
    assert not holds(timed)
    renew(timed)
    assert holds(timed)


def test_timed_with_another_compiler_alone_it_holds_by_its_text(nvrtc):
    """A GPU whose owner has NVRTC 13 and no 12.9: what he timed counts, until the text changes."""
    nvrtc["version"] = "13.0.88"
    timed = row("e" * 64, "first")
    renew(timed)
    assert holds(timed)


def test_a_build_that_was_timed_as_the_tree_compiles_it_has_one_line(nvrtc):
    renew(row(nvrtc["cubin"], nvrtc["text"]))
    (line,) = cubins.read(by_path(HOPPER))
    assert line.cubin_sha256 == nvrtc["cubin"] and line.code_sha256 is not None


def test_other_bytes_are_another_kernel(nvrtc):
    timed = row("b" * 64, "before")
    renew(timed)
    assert not holds(timed)


def test_what_another_compiler_made_of_a_build_goes_with_it(nvrtc):
    """Rows of NVRTC 13 hold while the text is theirs, and as long as 12.9 makes the same of what follows it."""
    elsewhere = row("c" * 64, "first")
    renew(elsewhere)
    assert {line.nvrtc for line in cubins.read(by_path(HOPPER))} == {None, "12.9.86"}
    nvrtc["text"] = "second"
    renew(elsewhere)
    assert holds(elsewhere)
    nvrtc["text"], nvrtc["cubin"] = "third", "d" * 64
    renew(elsewhere)
    assert not holds(elsewhere)


def test_the_same_machine_code_beside_other_constants_is_the_same_kernel(nvrtc):
    nvrtc["code"] = "c0de"
    timed = row("a" * 64, "first")
    renew(timed)
    nvrtc["text"], nvrtc["cubin"] = "with a constant more", "b" * 64
    assert not holds(timed)
    renew(timed)
    assert holds(timed) and holds(row("b" * 64, "with a constant more"))
    nvrtc["text"], nvrtc["cubin"], nvrtc["code"] = "with an instruction more", "d" * 64, "other"
    renew(timed)
    assert not holds(timed)


def test_what_one_gpu_timed_outlasts_the_turn_of_another_gpu_of_its_architecture(nvrtc):
    """Each has its own timings, and an older text of a build is known until somebody compiles today's."""
    mine = row("a" * 64, "before")
    other = mine.model_copy(update={"dtype": "float16"})
    renew(mine, other)
    nvrtc["text"], nvrtc["cubin"], nvrtc["code"] = "today's", "b" * 64, "a" * 64
    renew(mine)
    assert texts() == {"bfloat16": {"today's"}, "float16": {"first"}}
    renew(other)
    assert texts() == {"bfloat16": {"today's"}, "float16": {"today's"}}


def texts() -> dict[str, set[str]]:
    """Of the builds on file of each dtype."""
    found: dict[str, set[str]] = {"bfloat16": set(), "float16": set()}
    for line in cubins.read(by_path(HOPPER)):
        found["bfloat16" if dict(line.defines)["BF16"] else "float16"].add(line.text_sha256)
    return found


def test_another_compiler_tells_nothing(nvrtc, data):
    nvrtc["version"] = "13.0.88"
    timed = row("a" * 64, "before")
    renew(timed)
    assert not holds(timed) and not list(data.glob("cubins/*"))


def test_a_line_that_cannot_be_read_counts_for_nothing(nvrtc, data):
    timed = row("a" * 64, "before")
    renew(timed)
    (file,) = data.glob("cubins/*")
    file.write_text('{"variant": \n' + file.read_text())
    assert holds(timed)


@pytest.mark.parametrize(
    ("text", "says"),
    [("", "names no cubin of sm90a/forward/warp_specialised"), ("{\n", "line 1: no build of a kernel")],
)
def test_what_is_wrong_with_the_file_is_said_where_timings_hang_on_it(nvrtc, data, text, says):
    timings.write(row("a" * 64, "before"))
    (data / "cubins").mkdir()
    (data / "cubins" / "sm90a-forward-warp_specialised.jsonl").write_text(text)
    learned._kept.clear()
    with pytest.warns(DataWarning, match=says):
        assert not learned.of_machine(PROFILE)


def test_what_no_longer_has_such_a_configuration_is_not_compiled(nvrtc, data):
    gone = row("a" * 64, "before").model_copy(update={"config": {"tile_rows": 64}})
    renew(gone, gone.model_copy(update={"variant": "sm90a/forward/gone"}))
    assert not list(data.glob("cubins/*"))


def test_corrections_are_of_the_cubins_on_file(nvrtc):
    timings.write(row("a" * 64, "before"))
    before = learned_key.key_of(PROFILE)
    renew(row("a" * 64, "before"))
    assert learned_key.key_of(PROFILE) != before


def test_the_hash_of_a_text_is_known_for_every_kernel():
    assert len(identity.text_sha256(HOPPER)) == 64


def test_by_the_compiler_of_its_machine_a_campaigns_timing_goes_on_where_the_code_is_the_same(nvrtc, monkeypatch):
    nvrtc["version"] = "13.0.88"
    monkeypatch.setattr(compiled_here, "compile_together", lambda _sources: None)
    monkeypatch.setattr(compiled_here, "compile_all", cubins.compile_all)
    same, other = row("a" * 64, "an earlier text"), row("b" * 64, "an earlier text")
    assert compiled_here.renew(by_name("sm90a"), map(timings.of, (same, other))) == {HOPPER: 1}
    assert holds(same) and not holds(other)
    assert compiled_here.renew(by_name("sm90a"), map(timings.of, (same, other))) == {HOPPER: 0}
    (line,) = cubins.read(by_path(HOPPER))
    assert line.nvrtc == "13.0.88" and not line.is_of_the_projects_compiler


def test_it_goes_on_where_the_code_is_the_same_and_the_cubin_is_not(nvrtc, monkeypatch):
    nvrtc.update(version="13.0.88", code="c0de")
    monkeypatch.setattr(compiled_here, "compile_together", lambda _sources: None)
    monkeypatch.setattr(compiled_here, "compile_all", cubins.compile_all)
    timed = row("a" * 64, "before")
    assert compiled_here.renew(by_name("sm90a"), [timings.of(timed)]) == {HOPPER: 1}
    nvrtc.update(text="with a comment more", cubin="b" * 64)
    assert not holds(timed)
    assert compiled_here.renew(by_name("sm90a"), [timings.of(timed)]) == {HOPPER: 1} and holds(timed)
    nvrtc.update(text="with an instruction more", cubin="d" * 64, code="other")
    assert compiled_here.renew(by_name("sm90a"), [timings.of(timed)]) == {HOPPER: 0} and not holds(timed)
