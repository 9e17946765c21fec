import importlib
import json
from dataclasses import replace

import numpy as np
import pytest

import attention
from attention import AttentionProblem, Explanation, ProblemError, explain
from attention.choose.explain.explain import explain_on
from attention.choose.explain.tables import SHOWN_CANDIDATES, candidates
from microbench.errors import UnknownGpu
from microbench.machine.cpu import host_slug
from tests.cpu.attention_profiles import hopper_profile, host_profile, saved
from tests.elsewhere import printed

LONG = AttentionProblem(1, 8, 8, 2048, 2048, 64)


pytestmark = pytest.mark.usefixtures("data")


def test_an_explanation_says_pick_time_bound_constants_candidates_and_refusals():
    text = str(explain_on(host_profile(), LONG, only="smscope"))
    assert "tiled_online_softmax" in text and "predicted" in text and "(the bound)" in text
    for word in ("fma_f32_per_s", "exp_f32_per_s", "torch_sdpa", "picked", "not on host", "gradients"):
        assert word in text


def test_every_variant_appears_with_a_reason_or_a_time():
    from attention.variant import shipped

    for profile, dtype in ((host_profile(), "float32"), (hopper_profile(), "bfloat16")):
        text = str(explain_on(profile, AttentionProblem(1, 8, 8, 512, 512, 64, dtype=dtype)))
        assert all(variant.path in text for variant in shipped())


def test_an_explanation_survives_json():
    found = explain_on(host_profile(), LONG, only="smscope")
    assert Explanation.from_json(found.to_json()) == found
    document = json.loads(found.to_json())
    assert document["choice"]["pick"]["variant"] == "host/forward/tiled_online_softmax"
    assert {constant["name"] for constant in document["constants"]} >= {"fma_f32_per_s", "exp_f32_per_s"}


def test_a_lower_bound_among_the_constants_is_a_caution():
    profile = host_profile()
    soft = [
        c.model_copy(update={"label": "lower bound"}) if c.name == "fma_f32_per_s" else c for c in profile.constants
    ]
    found = explain_on(profile.model_copy(update={"constants": tuple(soft)}), LONG, only="smscope")
    assert any("fma_f32_per_s is a lower bound" in caution for caution in found.cautions)


def test_a_fallback_and_strict_are_named():
    text = str(explain_on(host_profile(), AttentionProblem(1, 2, 2, 64, 64, 300)))
    assert "Fallback" in text and "256" in text and "strict=True" in text


def test_conversions_are_named():
    half = AttentionProblem(1, 2, 2, 64, 64, 64, dtype="bf16")
    assert "converted to float32" in str(explain_on(host_profile(), half, only="smscope"))


def test_what_is_settled_beside_the_configuration_is_a_note():
    found = explain_on(hopper_profile(), replace(LONG, dtype="bfloat16"), only="sm90a/forward/warp_specialised")
    assert "softmaxes may begin together" in "".join(note for note in found.notes if note.startswith("pingpong=1"))


def test_a_lead_that_no_timings_bear_out_is_a_note():
    found = explain_on(host_profile(), LONG)
    assert found.choice.pick.variant == "host/forward/torch_sdpa"
    assert any("too few timings on this CPU" in note and "smscope bench-attention" in note for note in found.notes)


def test_a_candidate_has_one_row_and_those_not_shown_are_counted():
    choice = explain_on(host_profile(), LONG).choice
    assert choice.pick not in choice.candidates[:SHOWN_CANDIDATES]
    table = candidates(choice)
    rows = list(zip(*(column.cells for column in table.columns), strict=True))
    assert len(set(rows)) == len(rows)
    assert f"{len(choice.candidates) - len(rows)} slower ones not shown" in str(table.title)


def test_explain_takes_the_arguments_of_sdpa_and_arrays_too(data):
    saved(data, host_profile())
    array = np.zeros((1, 4, 32, 16), np.float32)
    found = explain(array, array[:, :2], array[:, :2], is_causal=True, enable_gqa=True, gpu="host-test-4c")
    assert (found.choice.problem.heads_kv, found.choice.problem.causal) == (2, True)
    masked = explain(array, array, array, attn_mask=np.ones((32, 32), bool), gpu="host-test-4c")
    assert masked.choice.problem.mask == "bool" and "mask" in masked.choice.fallback


def test_calls_of_the_other_two_functions_are_explained(data):
    saved(data, host_profile(), hopper_profile())
    q, k = np.zeros((2, 32, 4, 16), np.float32), np.zeros((2, 64, 2, 16), np.float32)
    found = attention.explain_flash_attn_func(q, k, k, causal=True, window_size=(8, 0), gpu="host-test-4c")
    assert found.choice.pick.variant == "host/forward/tiled_online_softmax"
    assert "bottom-right window=8,-1" in found.headline() and found.choice.fallback is None
    slopes = np.zeros(4, np.float32)
    found = attention.explain_flash_attn_func(q, k, k, alibi_slopes=slopes, sinks=slopes, gpu="host-test-4c")
    assert "no ALiBi, no attention sinks" in found.choice.fallback and "lse includes the sinks" in str(found)
    assert "would serve the same call without ALiBi, without sinks." in str(found)
    starts = np.array([0, 30, 64], np.int32)
    packed = (q.reshape(64, 4, 16).astype(np.float16), *[k.reshape(128, 2, 16).astype(np.float16)] * 2)
    found = attention.explain_flash_attn_varlen_func(*packed, starts, starts * 2, 34, 68, gpu="h100-test")
    assert found.choice.problem.varlen and (found.choice.problem.tokens_q, found.choice.problem.tokens_kv) == (64, 128)


def test_tensors_that_are_copied_first_are_named(data):
    torch = pytest.importorskip("torch")
    saved(data, host_profile())
    good, columns = torch.zeros(1, 2, 64, 64), torch.zeros(1, 2, 64, 64).transpose(2, 3)
    notes = explain(good, columns, good, only="smscope").notes
    assert sum("is copied first: its last dimension" in note for note in notes) == 1
    assert any(note.startswith("key is copied first") for note in notes)


def test_a_mask_is_judged_as_the_call_itself_would():
    array = np.zeros((1, 4, 32, 16), np.float32)
    with pytest.raises(ProblemError, match="must broadcast"):
        explain(array, array, array, attn_mask=np.ones((5, 32), bool))
    with pytest.raises(ProblemError, match="exclude each other"):
        explain(array, array, array, attn_mask=np.ones((32, 32), bool), is_causal=True)


def test_a_problem_or_three_tensors_and_nothing_between():
    with pytest.raises(ProblemError, match="three tensors"):
        explain(np.zeros((1, 1, 2, 2), np.float32))


def test_a_gpu_without_profile_is_named_with_those_that_have_one(data):
    saved(data, hopper_profile())
    with pytest.raises(UnknownGpu, match="h100-test"):
        explain(LONG, gpu="h900")


def test_a_cpu_without_profile_is_judged_by_a_shipped_one_and_says_so(data):
    saved(data, host_profile())
    found = explain(LONG)
    assert found.choice.gpu == host_slug()  # under its own name: a neighbour's timings say nothing here
    assert any("has no profile" in caution and "make bench" in caution for caution in found.cautions)


def test_a_cpu_where_nothing_was_ever_measured_gets_torch_and_a_caution():
    found = explain(LONG)
    assert found.choice.pick.owner == "torch" and found.choice.pick.prediction is None
    assert any("none is shipped" in caution for caution in found.cautions)


def test_explain_and_its_command_need_no_torch(data):
    saved(data, hopper_profile())
    script = (
        "import sys; sys.modules['torch'] = None\n"
        "from pathlib import Path\n"
        "from microbench import paths\n"
        f"paths.data_roots = lambda: [Path({str(data)!r})]\n"
        "import attention\n"
        "from attention import cli\n"
        "print(attention.explain(attention.AttentionProblem(1, 8, 8, 512, 512, 64, dtype='bf16'), gpu='h100-test'))\n"
        "cli.picks.picks('h100-test')\n"
        "try:\n"
        "    attention.sdpa\n"
        "except attention.EnvironmentLacks as error:\n"
        "    print('lacks:', error)\n"
        "cli.main(['explain', '--shape', '1,8,8,512,512,64', '--gpu', 'h100-test', '--json'])\n"
    )
    told = printed(script)
    assert "sm90a/forward/torch_cudnn" in told and "lacks: attention.sdpa needs torch" in told
    assert json.loads(told.splitlines()[-1])["choice"]["gpu"] == "h100-test"


def test_the_package_gives_the_function_also_after_the_module_of_its_name_was_imported():
    module = importlib.import_module("attention.choose.explain.explain")
    assert attention.explain is module.explain
