import json

import pytest

from attention import cli
from attention.choose import learned
from microbench.measure import turns
from tests.cpu.attention_profiles import hopper_profile, host_profile, saved
from tests.cpu.commands import called


@pytest.fixture(autouse=True)
def _profiles(data):
    saved(data, host_profile(), hopper_profile())


def run(capsys, *arguments):
    return called(capsys, cli.main, *arguments)


SHAPE = ("--shape", "1,16,16,4096,4096,128")
LONG = ("--shape", "1,16,16,16384,16384,128")


def test_explain_prints_the_choice(capsys, monkeypatch):
    code, out, err = run(capsys, "explain", *SHAPE, "--gpu", "h100-test", "--causal")
    assert code == 0 and not err
    assert "causal on h100-test: sm90a/forward/torch_cudnn" in out and "wgmma_n128_bf16_flops_per_clk_sm" in out
    assert "not been timed beside torch's" in " ".join(out.split())
    monkeypatch.setenv("SMSCOPE_UNMEASURED", "1")
    code, out, _ = run(capsys, "explain", *LONG, "--gpu", "h100-test")
    assert code == 0 and "full on h100-test: sm90a/forward/warp_specialised" in out


def test_explain_json_is_one_line(capsys):
    code, out, err = run(capsys, "explain", *SHAPE, "--gpu", "h100-test", "--dtype", "bfloat16", "--causal", "--json")
    assert code == 0 and not err and out.count("\n") == 1
    choice = json.loads(out)["choice"]
    assert choice["problem"]["dtype"] == "bfloat16" and choice["problem"]["causal"]
    assert choice["refused"] and choice["candidates"]


def test_every_feature_has_an_option(capsys):
    options = "--causal --flash --window 64,0 --feature softcap=15 --feature alibi --feature sinks --varlen 64,9000"
    asked = ("--shape", "2,4,2,40,8192,64", *options.split(), "--gpu", "h100-test")
    code, out, err = run(capsys, "explain", *asked, "--json")
    assert code == 0 and not err
    problem = json.loads(out)["choice"]["problem"]
    expected = {"causal": True, "alignment": "bottom_right", "window": [64, -1], "softcap": 15.0, "alibi": True}
    expected |= {"sinks": True, "varlen": True, "tokens_q": 64, "tokens_kv": 9000, "mask": "none"}
    assert {name: problem[name] for name in expected} == expected
    code, out, _ = run(capsys, "explain", *SHAPE, "--feature", "mask=bool", "--gpu", "host-test-4c")
    assert code == 0 and "tiled_online_softmax has no bool mask" in out


def test_lengths_say_what_the_pick_takes_by_them_and_change_no_pick(capsys):
    asked = ("explain", "--shape", "3,4,4,4096,4096,128", "--gpu", "h100-sxm-80gb", "--json")
    even, uneven, unknown = (
        json.loads(run(capsys, *asked, *more)[1])
        for more in (("--lengths", "3x4096"), ("--lengths", "4096+3000+100"), ("--varlen", "7196,7196"))
    )
    assert even["choice"]["problem"]["tokens_q"] == 3 * 4096 and uneven["choice"] == unknown["choice"]
    said = "by the sequences' own lengths, which a call does not know, it takes "
    assert any(note.startswith(said) for note in uneven["notes"])
    assert not any(note.startswith(said) for note in unknown["notes"])


def test_the_dtype_defaults_to_what_the_machine_is_used_with(capsys):
    for gpu, dtype in (("h100-test", "bfloat16"), ("host-test-4c", "float32")):
        _, out, _ = run(capsys, "explain", *SHAPE, "--gpu", gpu, "--json")
        assert json.loads(out)["choice"]["problem"]["dtype"] == dtype


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--shape", "1,8,8,16,16,0"), "head_dim is 0"),
        (("--shape", "1,8,3,16,16,64"), "whole number of query heads"),
        (("--shape", "eight"), "six or seven whole numbers"),
        (("--varlen", "0,0"), "give 4096 rows of queries and 4096 of keys.\n"),
        (("--varlen", "4096,4097"), "does not fit B=1 sequences"),
        (("--varlen", "100,100"), "or --shape 1,32,8,100,100,128."),
        (("--shape", "2,4,2,40,90,64,96", "--varlen", "39,200"), "give 40 to 80 rows of queries and 90 to 180 of keys"),
        (("--shape", "2,4,2,40,90,64,96", "--varlen", "39,200"), "or --shape 2,4,2,39,100,64,96."),
        ((*SHAPE, "--dtype", "int8"), "bfloat16"),
        ((*SHAPE, "--scale", "nan"), "finite"),
        ((*SHAPE, "--gpu", "h900"), "h100-test"),
        ((*SHAPE, "--only", "nobody"), "names no kernel"),
        ((*SHAPE, "--gpu", "h100-test", "--only", "smscope", "--dtype", "f32"), "the same call in bfloat16"),
        ((*SHAPE, "--lengths", "9y"), "--lengths 9y are no lengths"),
        ((*SHAPE, "--lengths", "64+2x9"), "are 3 sequences of 9 to 64 rows"),
        ((*SHAPE, "--lengths", "4096", "--varlen", "1,1"), "give one of them"),
        ((*SHAPE, "--window", "1024"), "--window 1024 is not two whole numbers"),
        ((*SHAPE, "--window", "-3,0"), "-1 for all"),
        ((*SHAPE, "--feature", "softcap=-1"), "softcap is -1"),
        ((*SHAPE, "--feature", "mask=int"), "none, bool, float"),
    ],
)
@pytest.mark.parametrize("as_json", [(), ("--json",)])
def test_bad_input_is_one_sentence_on_stderr_and_exit_code_2(capsys, arguments, says, as_json):
    code, out, err = run(capsys, "explain", *arguments, *as_json)
    assert code == 2 and not out
    assert says in err and err.count("\n") == 1 and "Traceback" not in err


def test_explain_alone_explains_a_usual_prompt_and_a_gpu_that_nobody_measured(capsys):
    code, out, err = run(capsys, "explain", "--gpu", "a100")
    assert code == 0 and not err
    assert "Skv=4096" in out and "sm80/forward/software_pipelined" in out
    for known in ("compute capability 8.0", "A100 SXM4 80GB", "2.04 TB/s", "mma_bf16_latency_cycles", "no profile"):
        assert known in out
    code, out, _ = run(capsys, "explain", "--gpu", "a100", "--json")
    told = json.loads(out)
    assert code == 0 and [board["slug"] for board in told["known"]["boards"]][:2] == [
        "a100-sxm4-40gb",
        "a100-sxm4-80gb",
    ]
    assert told["choice"]["pick"]["prediction"] is None
    code, out, _ = run(capsys, "picks", "--gpu", "v100")
    assert code == 0 and "float16" in out and "none of sm70 is shipped" in out


@pytest.mark.parametrize("arguments", [("explain", "--nothing"), ("measure",), ("bench", "--shape")])
def test_an_option_or_verb_that_does_not_exist_is_exit_code_2(capsys, arguments):
    code, out, err = run(capsys, *arguments)
    assert code == 2 and not out and err


def test_picks_prints_three_shapes_with_the_reason(capsys):
    code, out, _ = run(capsys, "picks", "--gpu", "host-test-4c")
    assert code == 0 and out.count("bound by") == 3 and "causal" in out and "smscope explain" in out
    code, out, _ = run(capsys, "picks", "--gpu", "host-test-4c", "--json")
    assert code == 0 and len(json.loads(out)) == 3


def test_picks_end_in_80_columns_with_what_is_in_doubt_and_the_next_command(capsys, data):
    code, out, _ = run(capsys, "picks", "--gpu", "h100-test")
    assert code == 0 and max(len(line.rstrip()) for line in out.splitlines()) <= 80 and "In doubt" not in out
    assert out.splitlines()[-2].endswith("smscope explain \\")
    assert out.splitlines()[-1].strip() == "--shape 4,16,16,1024,1024,64 --gpu h100-test"
    busy = host_profile()
    constants = tuple(c.model_copy(update={"flags": ("busy",)}) for c in busy.constants)
    saved(data, busy.model_copy(update={"constants": constants}))
    code, out, _ = run(capsys, "picks", "--gpu", busy.gpu)
    assert code == 0 and max(len(line.rstrip()) for line in out.splitlines()) <= 80
    said = " ".join(out.split())
    assert "In doubt: fma_f32_per_s, matmul_f32_flops_per_s: measured while the machine was busy." in said
    assert said.count("host/forward/torch_sdpa, not predicted, because matmul_f32_flops_per_s") == 3
    assert out.splitlines()[-1].strip() == "make bench"


def test_bench_prints_ratios_and_json_holds_them(capsys, monkeypatch):
    monkeypatch.setattr(turns, "USUAL", turns.Rounds(3, 3))
    code, out, _ = run(capsys, "bench", "--shape", "1,2,2,40,40,16", "--shape", "1,2,1,8,40,16", "--full", "--json")
    rows = json.loads(out)
    assert code == 0 and len(rows) == 6 and out.count("\n") == 1
    torch_rows = [row for row in rows if row["candidate"].startswith("torch_sdpa")]
    assert [row["torch_over_this"] for row in torch_rows] == [1.0, 1.0]
    assert all(row["timing"]["seconds"] > 0 and row["failure"] is None for row in rows)
    code, out, _ = run(capsys, "bench", "--shape", "1,2,2,40,40,16", "--causal", "--only", "smscope")
    assert code == 0 and "tiled_online_softmax" in out and "torch_sdpa" not in out


def test_bench_refuses_a_shape_that_makes_no_sense(capsys):
    code, _, err = run(capsys, "bench", "--shape", "1,2,2,40,40,0")
    assert code == 2 and "head_dim is 0" in err


def test_peers_without_a_gpu_are_one_sentence(capsys, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    code, out, err = run(capsys, "bench", "--peers")
    assert code == 2 and not out
    assert "torch sees none here; run this on a machine that has one" in err and err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--flex",), "--flex"),
        (("--peers", *SHAPE), "--shape"),
        (("--peers", "--dtype", "float16"), "--dtype"),
        (("--peers", "--full"), "--causal/--full"),
        (("--peers", "--only", "torch"), "--only"),
    ],
)
def test_an_option_of_bench_that_would_do_nothing_is_refused(capsys, arguments, named):
    code, out, err = run(capsys, "bench", *arguments)
    assert code == 2 and not out and named in err and err.count("\n") == 1


def test_check_says_where_there_is_no_tuned_kernel(capsys):
    code, out, err = run(capsys, "check", "--arch", "host")
    assert code == 0 and not out and "o tuned CUDA kernel for host" in err
    code, out, err = run(capsys, "check", "--arch", "host", "--json")
    assert code == 0 and out == "[]\n" and "host" in err


@pytest.mark.parametrize(("verb", "default"), [("explain", "bfloat16 on a GPU"), ("bench", "float32 by default")])
def test_the_help_says_which_dtype_is_the_default(capsys, verb, default):
    _, out, _ = run(capsys, verb, "--help")
    assert default in " ".join(out.split())


def test_a_pick_that_is_slower_by_prediction_says_why(capsys, monkeypatch):
    monkeypatch.setattr(learned, "duels_of_machine", lambda profile: ())
    _, out, _ = run(capsys, "picks", "--gpu", "host-test-4c")
    said = " ".join(out.split())
    assert "timings do not confirm host/forward/tiled_online_softmax, " in said
    assert max(len(line.rstrip()) for line in out.splitlines()) <= 80
    code, out, _ = run(capsys, "explain", *SHAPE, "--gpu", "host-test-4c")
    said = " ".join(out.split())
    assert code == 0 and "fastest first (timings on this CPU do not confirm host/forward/tiled" in said
    assert "not confirmed by timings; bound by" in said and "ties" not in said.partition("Candidates")[2]
    assert "`smscope bench-attention` adds some" in said


def test_an_empty_name_is_the_same_error_of_both_verbs(capsys):
    picked, explained = (run(capsys, verb, "--gpu", "") for verb in ("picks", "explain"))
    assert picked == explained and picked[0] == 2 and "No GPU called ''" in picked[2]
