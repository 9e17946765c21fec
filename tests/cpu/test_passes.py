"""A pass is a folder for each kernel and a file for torch's; what finds, chooses and explains it knows no names."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from attention import AttentionProblem, ProblemError, cli, explain, variant
from attention.choose import learned, samples
from attention.choose.choose import choose
from attention.choose.explain.explain import explain_on
from attention.compare import bench
from attention.compare.bench import Measured
from attention.kernels.torch import cpu
from attention.timed import timings
from attention.timed.timing import Timing
from attention.variant import Config, CudaBuild, Variant, by_path, discover, every_shipped, shipped
from attention.verify import build_matrix
from microbench.machine.cpu import host_slug
from microbench.measure import turns
from tests.cpu.attention_profiles import hopper_profile, host_profile, saved
from tests.cpu.commands import called
from tests.cpu.timing_rows import made_up

CACHED = AttentionProblem(8, 8, 2, 1, 2048, 64)
SMALL = AttentionProblem(1, 2, 1, 24, 40, 16, causal=True)
OURS = """
from attention.tile import Demand, Tile
from attention.variant import Variant


def tile(problem, config):
    return Tile(1, 64, 1, 64, (Demand("fma", "one", 64 * config["splits"], "fma_f32_per_s"),))


VARIANT = Variant("keys split over threads", "smscope", ("host",), lambda problem, arch: None, tile=tile,
    space=(("splits", (1, 2)),))
"""
TORCHS = """
from attention.variant import Variant


def decode(query):
    return f"decoded {query}"


VARIANTS = (
    Variant("torch, a key at a time", "torch", ("host",), lambda problem, arch: None, path="host/decode/torch_paged"),
    Variant("torch, on a GPU", "torch", ("sm90a",), lambda problem, arch: None, path="sm90a/decode/torch_paged"),
)
"""


pytestmark = pytest.mark.usefixtures("data")


@pytest.fixture
def decode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A pass that nobody wrote: one folder of ours, one file of torch's."""
    root = tmp_path / "kernels"
    for file, text in (("host/decode/split_keys/variant.py", OURS), ("torch/paged.py", TORCHS)):
        (root / file).parent.mkdir(parents=True)
        (root / file).write_text(text)
    found = discover(root)
    every = (*every_shipped(), *found)
    monkeypatch.setattr(variant, "every_shipped", lambda: every)
    shipped.cache_clear()
    yield found
    shipped.cache_clear()


def test_a_new_pass_is_found_chosen_explained_and_run_without_an_edit(decode: tuple[Variant, ...]) -> None:
    paths = ["host/decode/split_keys", "host/decode/torch_paged", "sm90a/decode/torch_paged"]
    assert [each.path for each in decode] == paths and {each.passes for each in decode} == {"decode"}
    assert [each.path for each in shipped("decode")] == paths and not {*paths} & {each.path for each in shipped()}
    choice = choose(host_profile(), CACHED, passes="decode")
    assert choice.passes == "decode" and {each.variant for each in choice.candidates} == {*paths[:2]}
    assert choice.pick.variant == paths[0] and choice.pick.config["splits"] == 1
    said = str(explain_on(host_profile(), CACHED, passes="decode"))
    assert all(path in said for path in paths) and "gradients" not in said
    assert by_path("host/decode/torch_paged").load()("q") == "decoded q"


def test_a_file_of_torchs_without_variants_is_named(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    for text in ("", "VARIANTS = (1,)"):
        (tmp_path / "torch" / "empty.py").write_text(text)
        with pytest.raises(Exception, match=r"kernels/torch/empty\.py binds no VARIANTS"):
            discover(tmp_path)


def test_a_pass_that_no_kernel_computes_is_refused() -> None:
    with pytest.raises(ProblemError, match=r"'sideways' names no pass.*backward, forward"):
        choose(host_profile(), CACHED, passes="sideways")


def test_every_pass_of_torch_can_be_loaded_and_one_kernel_serves_everything() -> None:
    for each in every_shipped():
        if each.owner == "torch":
            assert each.load().__name__ == each.passes and not each.steps(SMALL, Config())
    for passes in ("forward", "backward"):
        unfused = [each for each in shipped(passes) if not each.fused]
        assert [each.archs == ("host",) for each in unfused] == [True, False]


def test_an_explanation_names_the_backward_and_explains_it_when_asked() -> None:
    q, k, v = (torch.randn(1, 2, 24, 16, requires_grad=True) for _ in range(3))
    assert any("host/backward/torch_sdpa computes the gradients" in note for note in explain(q, k, v).notes)
    found = explain(q, k, v, passes="backward")
    assert found.choice.pick.variant == "host/backward/torch_sdpa" and found.choice.passes == "backward"
    capped = explain(replace(SMALL, softcap=5.0), passes="backward").choice
    assert capped.pick.variant == "host/backward/torch_math" and capped.fallback == "torch_sdpa has no softcap"
    assert capped.nearest == "without softcap"
    gpu = explain_on(hopper_profile(), AttentionProblem(1, 8, 8, 4096, 4096, 128, dtype="bf16"), passes="backward")
    assert gpu.choice.pick.variant == "sm90a/backward/torch_cudnn"


def test_the_command_line_explains_and_picks_backwards(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved(data, hopper_profile())
    for verb in ("explain", "picks"):
        assert "backward/torch_cudnn" in called(capsys, cli.main, verb, "--gpu", "h100-test", "--backward")[1]


def timed(monkeypatch: pytest.MonkeyPatch) -> list[Measured]:
    monkeypatch.setattr(turns, "USUAL", turns.Rounds(3, 3))
    return bench.bench([SMALL], passes="backward")


def test_a_backward_is_timed_into_whole_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = timed(monkeypatch)
    assert [each.candidate.variant for each in measured] == ["host/backward/torch_sdpa", "host/backward/torch_math"]
    assert [each.picked for each in measured] == [True, False]
    for each in measured:
        row = each.timing
        assert (
            row is not None and row.passes == "backward" and row.problem == SMALL and 0 < row.error <= row.allowed_error
        )
        assert row.tflops == pytest.approx(2.5 * SMALL.flops / row.seconds / 1e12)
        assert Timing.model_validate_json(row.model_dump_json()) == row and by_path(row.variant).passes == row.passes
        timings.write(row)
    rows, wrong = timings.read(host_slug())
    assert not wrong and {row.passes for row in rows} == {"backward"}
    assert not learned.efficiencies(host_profile(), rows)  # nothing of a backward is predicted yet


def test_a_wrong_backward_is_named_and_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = cpu.backward

    def wrong(*given):
        found = right(*given)
        found.key.mul_(1.01)
        return found

    monkeypatch.setattr(cpu, "backward", wrong)
    first, second = timed(monkeypatch)
    assert first.timing is None and "wrong" in str(first.failure) and second.timing is not None


def test_the_bench_writes_backwards_beside_forwards(capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    monkeypatch.setattr(turns, "USUAL", turns.Rounds(3, 3))
    code, out, _ = called(capsys, cli.main, "bench", "--shape", "1,2,1,24,40,16", "--causal", "--backward", "--json")
    assert not code and {row["timing"].get("passes") for row in json.loads(out)} == {"backward"}


STEPS = tuple(CudaBuild(f"attention_forward_{part}", (("PART", n),), 128, 1024) for n, part in enumerate("ab"))


def test_a_kernel_of_two_steps_is_two_builds_and_a_timing_holds_by_both(monkeypatch: pytest.MonkeyPatch) -> None:
    real = by_path("sm90a/forward/warp_specialised")
    two = replace(real, builds=lambda problem, config: STEPS, workspace=lambda problem, config: 4096)
    assert {job.source.kernel for job in build_matrix.jobs([two], wanted=("sm90a",))} == {step.kernel for step in STEPS}
    assert two.workspace(CACHED, Config()) == 4096 and real.workspace(CACHED, Config()) == 0
    first, second = (frozenset({samples.cubins.build_of("sm90a", step.kernel, step.defines)}) for step in STEPS)
    monkeypatch.setattr(samples.cubins, "builds_of", lambda _: {"a" * 64: first, "b" * 64: second})
    monkeypatch.setattr(samples.cubins, "asked", lambda _: STEPS)
    known = samples.known(hopper_profile(), (two,))
    row = {"gpu": "h100-test", "shape": (1, 1, 1, 1, 1, 64, 64), "dtype": "bfloat16"}
    # In turn: both steps as they are launched today, a cubin nobody knows, and those of another problem's builds.
    for cubins, holds in (("ab", True), ("ac", False), ("ba", False)):
        timing = made_up(1.0, real.path, **row, cubin_sha256="+".join(each * 64 for each in cubins))
        assert (known.of(timings.of(timing)) is two) == holds
    assert real.steps(replace(CACHED, dtype="bfloat16"), real.configs()[0]) and len(two.steps(CACHED, Config())) == 2
