"""attention.record and prewarm: what a program called is what is compiled, and each misfit is one sentence."""

import json
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attention import AttentionProblem, flash_attn_func, flash_attn_varlen_func, prewarm, record, sdpa
from attention.ahead import recorded
from attention.ahead.prewarm import plans
from attention.ahead.recorded import RecordedCall
from attention.choose.machine import MachineProfile
from attention.cli import main
from attention.errors import EnvironmentLacks
from attention.frontends.flash_attn.packed import flash_attn_qkvpacked_func
from attention.kernels.launch import waiting
from attention.kernels.launch.frame import Described
from attention.kernels.launch.machine import standing_in
from attention.kernels.launch.source import source_of
from attention.op import plan
from attention.variant import CudaBuild
from microbench.errors import DataError, UnknownGpu
from microbench.machine.arch import by_name
from microbench.results.profile import Profile

H200 = Profile.load("h200-sxm-141gb")
LONG = AttentionProblem(1, 2, 1, 600, 600, 64, dtype="bfloat16", device="cuda", causal=True)
F = torch.nn.functional.scaled_dot_product_attention

PROBLEMS = st.builds(
    AttentionProblem,
    st.integers(1, 2),
    st.just(4),
    st.sampled_from((1, 2, 4)),
    st.integers(1, 700),
    st.integers(1, 700),
    st.sampled_from((40, 64, 128, 192, 256)),
    dtype=st.sampled_from(("float16", "bfloat16", "float32")),
    device=st.just("cuda"),
    causal=st.booleans(),
    alignment=st.sampled_from(("top_left", "bottom_right")),
    window=st.sampled_from(((-1, -1), (128, 0))),
    softcap=st.sampled_from((0.0, 30.0)),
    dropout_p=st.sampled_from((0.0, 0.1)),
)
CALLS = st.builds(
    RecordedCall, PROBLEMS, st.sampled_from(("sdpa", "flash_attn")), st.booleans(), st.sampled_from(("", "smscope"))
)


@given(st.lists(st.tuples(CALLS, st.integers(1, 9)), max_size=4))
@settings(max_examples=30, deadline=None)
def test_a_file_keeps_every_call_and_adds_up_what_processes_append(tmp_path_factory, calls):
    path, whole = tmp_path_factory.mktemp("recorded") / "calls.jsonl", Counter()
    path.touch()
    for call, count in calls:
        recorded.append(path, {call: count})
        whole[call] += count
    assert recorded.read(path) == whole


class Asked:
    """A machine that notes what a launch asks it to compile, and launches nothing."""

    sm_count = 132

    def __init__(self) -> None:
        self.builds: list[tuple[Path, CudaBuild]] = []

    def function(self, folder: Path, build: CudaBuild) -> None:
        self.builds.append((folder, build))

    def tensor_map(self, *_: object) -> bytes:
        return bytes(128)

    def counters(self, count: int = 2) -> int:
        return 0

    def scratch(self, size: int) -> None: ...

    def empty(self, size: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        return torch.empty_strided(size, strides, dtype=dtype)

    def frame(self, *described: Any) -> Described:
        return Described(*described)

    def launch(self, *_: object) -> None:
        pass


@given(PROBLEMS)
@settings(max_examples=40, deadline=None)
def test_what_is_compiled_is_what_the_call_launches(problem):
    (served,) = plans([RecordedCall(problem)], H200)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "machine_profile", lambda _: MachineProfile(H200))
        plan._pick_of.cache_clear()
        pick = plan.plan_for(MagicMock(device="cuda", empty=False), problem, torch.device("cuda"), "")
        plan._pick_of.cache_clear()
    assert (pick.owner == "smscope" and pick.fallback is None) == bool(served.sources)
    if not served.sources:
        return
    dtype = getattr(torch, problem.dtype)
    query = torch.empty(problem.batch, problem.heads_q, problem.seq_q, problem.head_dim, dtype=dtype)
    key = torch.empty(problem.batch, problem.heads_kv, problem.seq_kv, problem.head_dim, dtype=dtype)
    machine = Asked()
    with standing_in("cpu", machine):
        pick.run(query, key, key, problem, pick.config)
    launched = [source_of(folder, build, by_name("sm90a")) for folder, build in machine.builds]
    assert launched and launched == list(served.sources)


def test_every_door_is_recorded_once_a_call_and_a_program_that_fails_leaves_its_calls(tmp_path):
    path = tmp_path / "calls.jsonl"
    q, kv = torch.zeros(1, 4, 9, 16, requires_grad=True), torch.zeros(1, 2, 9, 16)
    with pytest.raises(KeyError), record(path) as counts:
        for _ in range(3):
            sdpa(q, kv, kv, is_causal=True, enable_gqa=True)
        F(kv, kv, kv)
        flash_attn_func(kv, kv, kv, causal=True)
        flash_attn_qkvpacked_func(torch.stack((kv, kv, kv), 2))
        with pytest.raises(Exception, match="query"):
            sdpa(q, kv, kv)
        raise KeyError
    sdpa(kv, kv, kv, is_causal=True)
    found = recorded.read(path)
    assert found == counts and sorted(found.values()) == [1, 1, 1, 3]
    ((often, _),) = found.most_common(1)
    assert often.gradients and often.problem == AttentionProblem(1, 4, 2, 9, 9, 16, causal=True)
    assert Counter(call.door for call in found) == {"sdpa": 2, "flash_attn": 2}


def test_a_call_with_nothing_to_compute_is_not_recorded(tmp_path):
    path = tmp_path / "calls.jsonl"
    one, rows = torch.zeros(1, 4, 8, 16), torch.zeros(8, 4, 16)
    starts, none = torch.tensor([0, 8], dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
    with record(path):
        for empty in (torch.zeros(0, 4, 8, 16), torch.zeros(1, 4, 0, 16)):
            sdpa(empty, empty, empty)
            F(empty, empty, empty)
            flash_attn_func(*[empty.transpose(1, 2)] * 3)
        sdpa(empty, one, one)
        sdpa(one, empty, empty)
        flash_attn_varlen_func(rows[:0], rows, rows, starts * 0, starts, 0, 8)
        flash_attn_varlen_func(rows[:0], rows[:0], rows[:0], none, none, 0, 0)
    assert not path.exists()


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ('{"version": 2, "shapes": []}', "line 2 of calls.jsonl was recorded as version 2, and this smscope reads"),
        ('{"version": 1, "count"', "line 2 of calls.jsonl is no recorded call"),
        ("[]", "line 2 of calls.jsonl is no recorded call"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(tmp_path, text, match):
    path = tmp_path / "calls.jsonl"
    recorded.append(path, {RecordedCall(LONG): 1})
    path.write_text(path.read_text() + text + "\n")
    with pytest.raises(DataError, match=match):
        prewarm(path, gpu="sm90a")


def test_no_file_no_such_gpu_and_no_gpu_are_one_sentence_each(tmp_path, monkeypatch):
    with pytest.raises(DataError, match=r"none\.jsonl cannot be read"):
        prewarm(tmp_path / "none.jsonl", gpu="sm90a")
    with pytest.raises(UnknownGpu, match="voodoo2"):
        prewarm([LONG], gpu="voodoo2")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(EnvironmentLacks, match="gpu='sm90a'"):
        prewarm([LONG])


def test_what_torch_serves_is_said_beside_what_is_compiled():
    calls = (RecordedCall(LONG), RecordedCall(AttentionProblem(1, 2, 2, 64, 64, 64, dtype="float64", device="cuda")))
    ours, theirs = plans(calls, H200)
    assert ours.sources and ours.why is None and "sm90a/forward" in str(ours)
    assert not theirs.sources and theirs.why and "float64" in str(theirs)


def test_a_call_that_waits_long_for_a_compiler_says_so_once_and_another_does_not(monkeypatch, caplog):
    monkeypatch.setattr(waiting, "PATIENCE_SECONDS", 0.02)
    build = CudaBuild("forward_sm90a", (), 128, 0)
    for seconds in (0.0, 0.2):
        with waiting.on_behalf_of(LONG), waiting.said(Path("sm90a/forward/mine"), build, by_name("sm90a")):
            time.sleep(seconds)
    (told,) = caplog.messages
    assert told.startswith(f"The first call of {LONG} waits for forward_sm90a (sm90a/forward/mine) to be compiled")
    assert "attention.prewarm" in told and told.endswith(".")


def test_a_call_whose_gradients_no_fused_kernel_has_is_torchs_from_sdpa_and_ours_from_flash_attn():
    problem = replace(LONG, softcap=30.0)
    plain, trained = RecordedCall(problem, "sdpa"), RecordedCall(problem, "sdpa", gradients=True)
    flash = replace(trained, door="flash_attn")
    first, second, third = plans((plain, trained, flash), H200)
    assert first.sources == third.sources and first.sources
    assert second.variant == "torch" and not second.sources and second.why


def test_the_verb_says_what_it_did_and_refuses_to_do_nothing(capsys, monkeypatch):
    monkeypatch.setattr("attention.ahead.prewarm.is_kept", lambda _: True)
    with pytest.raises(SystemExit) as ended:
        main(["prewarm", "--shape", "1,32,32,600,600,64", "--causal", "--gpu", "h200-sxm-141gb", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert not ended.value.code and (told["compiled"], told["kept"], told["refused"]) == (0, 1, [])
    assert told["calls"][0]["variant"] == "sm90a/forward/warp_specialised"
    with pytest.raises(SystemExit) as ended:
        main(["prewarm", "--gpu", "sm90a"])
    assert ended.value.code == 2 and "has nothing to compile" in capsys.readouterr().err
