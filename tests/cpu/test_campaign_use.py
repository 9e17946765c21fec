"""The set of use on a machine that answers as a test scripts it: from a freeze to its lines, resuming, and a plan."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import torch

from attention.call import Tensors
from attention.campaign import doors, eager, flash_4_ahead, freeze, plan, rivals, rows, set_use, timing
from attention.campaign.freeze import Freeze
from attention.campaign.plan import Job
from attention.campaign.posed import Posed, parse
from attention.campaign.rows import ProblemTiming, TileTiming
from attention.campaign.set_use import Used
from attention.compare import candidates
from attention.compare.candidates import FLASH_4, MATH, Candidate
from attention.compare.written import Written, written
from attention.errors import UnsupportedError
from attention.kernels.torch.composed import slow
from attention.problem import AttentionProblem
from attention.variant import Config
from microbench.files import put
from microbench.machine import stamp
from microbench.results import derive
from tests.cpu.campaign_rows import GPU, ONE, OTHER, line, tile
from tests.cpu.scripted_campaign import H200, Scripted, campaign, machine_of_campaigns  # noqa: F401  a fixture

COMMIT = "ab" * 20
DRAWN = (
    Used("prefill", "Llama", ONE),
    Used("vision", "ViT", OTHER),
    Used("decode", "gpt-oss", parse("decode 4 64 8 1 2048 64 bf16 sinks")),
)
CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _nothing_but_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "_installed", lambda name: False)


@pytest.fixture
def use(gpu: Scripted, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scripted]:
    """The machine, a freeze, and three problems that it draws."""
    derive.write(H200)
    frozen = Freeze(gpu=GPU, commit=COMMIT, hashes=freeze.hashes_of(stamp.ROOT, GPU))
    put(rows.file_of(GPU, "use", 1).parents[1] / "freeze-abababababab.json", frozen.model_dump_json())
    monkeypatch.setattr(set_use, "drawn", lambda commit: DRAWN if commit == COMMIT else ())
    gpu.peers_s = {"peer/torch_flash": 2e-3, "peer/torch_cudnn": 1e-3}
    yield gpu


def lines(number: int = 1) -> Sequence[ProblemTiming]:
    return rows.read(GPU, "use", number)


def test_a_set_of_use_is_timed_with_all_candidates_and_functions(
    use: Scripted, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = campaign(capsys, "--set", "use", "--json")
    told = json.loads(out)
    assert (code, told["timed"], told["left"], told["failed"]) == (0, 3, 0, 0) and told["file"].endswith("use-1.jsonl")
    found = {str(row.posed): row for row in lines()}
    assert {row.use for row in found.values()} == {"prefill: Llama", "vision: ViT", "decode: gpt-oss"}
    assert all(row.freeze == COMMIT and row.seed.startswith("use 1 abab") for row in found.values())
    whole = {str(job.posed): job for job in plan.jobs([each.posed for each in DRAWN], H200)}
    for name, row in found.items():
        assert sum(each.is_ours for each in row.tiles) == len(whole[name].tiles)
        called = [each for each in row.tiles if each.is_door]
        assert all(each.names and each.seconds for each in called)
        picked = {each.name for each in row.tiles if each.picked and each.is_ours}
        assert picked <= {each.names for each in called}
    assert [each.variant for each in found[str(ONE)].tiles if each.is_door] == [doors.SDPA, doors.FLASH]
    assert [each.variant for each in found[str(DRAWN[2].posed)].tiles if each.is_door] == [doors.FLASH]


def test_an_interrupted_campaign_of_use_goes_on_and_a_whole_one_is_followed_by_the_next(
    use: Scripted, capsys: pytest.CaptureFixture[str]
) -> None:
    use.dies_after = 2
    assert campaign(capsys, "--set", "use")[0] != 0 and len(lines()) == 2
    use.dies_after = None
    told = json.loads(campaign(capsys, "--set", "use", "--of", "abab", "--json")[1])
    assert (told["campaign"], told["timed"], told["left"]) == (1, 1, 0)
    assert json.loads(campaign(capsys, "--set", "use", "--json")[1])["campaign"] == 2 and len(lines(2)) == 3


def test_a_set_of_use_is_timed_of_the_frozen_model_and_weights_alone(
    use: Scripted, capsys: pytest.CaptureFixture[str]
) -> None:
    assert {"attention/campaign/set_use.py", "attention/campaign/uses.py"} <= {*freeze.hashes_of(stamp.ROOT, GPU)}
    hashes = freeze.hashes_of(stamp.ROOT, GPU) | {"attention/campaign/set_use.py": "another"}
    other = Freeze(gpu=GPU, commit="cd" * 20, hashes=hashes)
    put(rows.file_of(GPU, "use", 1).parents[1] / "freeze-cdcdcdcdcdcd.json", other.model_dump_json())
    code, _, err = campaign(capsys, "--set", "use", "--of", "cdcd")
    assert code == 2 and "set_use.py" in err and use.timed == []


def test_a_plan_of_use_needs_no_gpu_and_compiles_ahead(
    use: Scripted, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "is_kept", lambda source: False)
    code, out, _ = campaign(capsys, "--set", "use", "--ahead", "--gpu", GPU, "--json")
    told = json.loads(out)
    assert code == 0 and told["problems"] == 3 and told["configurations"] > 60 and use.timed == []
    assert MATH in told["peers"] and use.compiled == told["kernels_to_compile"] > 30


def test_a_problem_that_no_kernel_of_ours_serves_is_left_until_a_line_is_of_it() -> None:
    posed = parse("prefill 1 8 8 512 512 64/528 bf16")
    (job,) = rivals.jobs_of_use([Used("prefill", "a", posed)], H200, ())
    assert job.tiles == () and plan.left([job], []) == (job,)
    assert plan.left([job], [line(posed, TileTiming(variant=MATH, config={}))]) == ()


# What happens on a GPU, without one: every candidate is asked, and right or not.


class Captured:
    """A call that a graph would hold."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.captured, self.call, self.replay = True, call, call


def right(problem: AttentionProblem, given: Tensors) -> Written:
    return Written(lambda: slow.forward(given.query, given.key, given.value, problem, Config(), given.extras)[0])


def refuses(problem: AttentionProblem, given: Tensors) -> Written:
    raise UnsupportedError("it does not")


def prepared(posed: Posed, *peers: Candidate) -> tuple[dict[str, TileTiming], Any]:
    of = doors.of(posed.problem, H200)
    return timing.prepared(Job(posed, (), 1e-3, "sm90a", peers=peers, doors=of), CPU)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("prefill 1 4 2 70 70 64 bf16 causal", [doors.SDPA, doors.FLASH]),
        ("prefill 1 4 2 40 70 64 bf16 causal", [doors.SDPA, doors.FLASH]),
        ("features 2 2 2 70 70 64 bf16 mask", [doors.SDPA]),
        ("features 2 2 2 70 70 64 bf16 bias", [doors.SDPA]),
        ("features 1 4 2 70 70 64 bf16 causal window=20 softcap=30", [doors.FLASH]),
        ("decode 2 4 2 1 70 64 bf16 sinks", [doors.FLASH]),
        ("decode 2 4 2 1 70 64 bf16 used=50+70", [doors.FLASH]),
        ("packed 0 4 2 0 0 64 bf16 causal lengths=40+130+20", [doors.FLASH]),
        ("prefill 1 2 2 70 70 64/32 f16 causal", [doors.SDPA, doors.FLASH]),
    ],
)
def test_functions_are_called_as_a_user_calls_them_and_are_right(
    text: str, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timing, "Graphed", Captured)
    found, calls = prepared(parse(text))
    assert [*found] == [*calls] == names
    for each in found.values():
        assert each.failure is None and each.error is not None and each.names and each.is_door
        assert each.error <= (each.allowed_error or 0)


def test_torchs_way_without_a_kernel_is_asked_where_no_kernel_of_torchs_is_right(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(timing, "Graphed", Captured)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    posed = parse("short 1 2 2 70 70 64 bf16")
    flash, math = (Candidate(f"peer/torch_{name}", "1", right) for name in ("flash", "math"))
    assert [*prepared(posed, flash, math)[0]][:2] == ["peer/torch_flash", doors.SDPA]
    refused = Candidate("peer/torch_flash", "1", refuses)
    found, calls = prepared(posed, refused, candidates.math())
    assert found["peer/torch_flash"].failure == "it does not" and MATH in calls


def timed_lines(best: float) -> dict[str, TileTiming]:
    def one(name: str, seconds: float) -> TileTiming:
        return TileTiming(variant=name, config={}, seconds=(seconds,))

    found = [one("peer/torch_flash", best), one(FLASH_4, 2.9 * best), one("peer/torch_efficient", 3.1 * best)]
    return {"ours": tile(96, 1.1 * best)} | {each.variant: each for each in (*found, one(doors.SDPA, 4 * best))}


def test_functions_and_peers_that_are_near_are_timed_outside_of_graphs_where_the_gpu_has_little_to_do() -> None:
    calls: Any = {name: Captured(int) for name in timed_lines(1.0)}
    assert [*timing.to_time_eagerly(timed_lines(10e-6), calls)] == ["peer/torch_flash", FLASH_4, doors.SDPA]
    assert timing.to_time_eagerly(timed_lines(eager.MOST_S), calls) == {}


def test_a_call_outside_of_graphs_is_the_users_alone_in_turns_and_one_that_fails_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(eager, "CALLS", 3)
    told: list[str] = []

    def lost() -> None:
        raise RuntimeError("no room")

    def read(out: object) -> None:
        told.append("read")

    calls = {name: Written(lambda name=name: told.append(name), read=read) for name in "ab"}  # type: ignore[misc]
    found = eager.timed(calls | {"lost": written(lost)}, "seed")
    assert [*found] == ["a", "b"] and {len(each) for each in found.values()} == {eager.ROUNDS}
    assert told.count("a") == told.count("b") == 3 * (eager.ROUNDS + 1) and "read" not in told
    orders = {"".join(told[at : at + 6 : 3]) for at in range(0, len(told), 6)}
    assert orders == {"ab", "ba"}


# FlashAttention-4, compiled ahead.


def flash_4_jobs() -> tuple[Job, ...]:
    return rivals.jobs_of_use(DRAWN[:2], H200, (Candidate(FLASH_4, "4.0", right),))


@pytest.fixture
def cached(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Any:
    monkeypatch.setenv(flash_4_ahead.FOLDER, str(tmp_path))
    monkeypatch.setenv(flash_4_ahead.ENABLED, "1")
    return tmp_path


def test_what_was_compiled_ahead_waits_for_no_compiler(cached: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    class Pool:
        """A pool of this very process."""

        def __init__(self, *_: object, **__: object) -> None: ...
        def __enter__(self) -> "Pool":
            return self

        def __exit__(self, *_: object) -> None: ...
        def submit(self, function: object, posed: Posed) -> Any:
            from concurrent.futures import Future

            tried.append(str(posed))
            done: Future[str] = Future()
            done.set_result("" if len(tried) == 1 else "it is no class")
            return done

    monkeypatch.setattr(flash_4_ahead, "beside", Pool)
    jobs = flash_4_jobs()
    assert [job.jit_s > 0 for job in jobs] == [True, True]
    assert flash_4_ahead.compiled(jobs, lambda seconds: False) == jobs and tried == []
    found = flash_4_ahead.compiled(jobs, lambda seconds: True)
    assert sorted(tried) == sorted(str(job.posed) for job in jobs) and all(job.jit_s == 0 for job in found)
    assert flash_4_ahead.compiled(jobs, lambda seconds: True) == found and len(tried) == 2


def test_jobs_without_flash_attention_4_start_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(flash_4_ahead.ENABLED, raising=False)
    jobs = rivals.jobs_of_use(DRAWN, H200, ())
    assert flash_4_ahead.compiled(jobs, lambda seconds: True) == jobs
    assert flash_4_ahead.ENABLED not in flash_4_ahead.os.environ


def test_a_compile_that_fails_says_why_and_raises_nothing() -> None:
    assert flash_4_ahead.compile_one(ONE)
