import pytest

from attention.choose.choose import choose
from attention.choose.nearest import nearest
from attention.errors import UnsupportedError
from attention.problem import AttentionProblem
from attention.variant import Variant
from microbench.machine.arch import by_name
from tests.cpu.attention_profiles import host_profile

HOST = by_name("host")


def kernel(*features, dtypes=("float16",), widest=128):
    def refuses(problem, arch):
        return None if problem.dtype in dtypes and problem.head_dim <= widest else "no"

    return Variant("ours", "smscope", ("host",), refuses, features=frozenset(features), path="host/forward/ours")


@pytest.mark.parametrize(
    ("features", "options", "says"),
    [
        ((), {"softcap": 3.0}, "without softcap"),
        (("softcap",), {"softcap": 3.0, "dtype": "float32"}, "in float16"),
        (("softcap",), {"softcap": 3.0, "alibi": True, "sinks": True}, "without ALiBi, without sinks"),
        (("bool mask",), {"mask": "float"}, "with a bool mask"),
        ((), {"mask": "float"}, "without the mask"),
        (("sliding window",), {"seq_kv": 9, "window": (2, -1), "alignment": "bottom_right"}, "aligned top-left"),
        ((), {"varlen": True}, "one sequence at a time"),
    ],
)
def test_the_fewest_changes_are_named(features, options, says):
    sizes = {"batch": 2, "heads_q": 2, "heads_kv": 2, "seq_q": 8, "seq_kv": 8, "head_dim": 64, "dtype": "float16"}
    assert nearest(AttentionProblem(**(sizes | options)), HOST, (kernel(*features),)) == says


def test_head_dims_beyond_every_kernel_have_no_near_call_but_one_at_256():
    problem = AttentionProblem(1, 2, 2, 8, 8, 300, dtype="float16")
    assert nearest(problem, HOST, (kernel(widest=256),)) == "with head dims up to 256"
    assert nearest(problem, HOST, (kernel(widest=64),)) is None


def test_where_no_tuned_kernel_exists_nothing_is_near():
    assert nearest(AttentionProblem(1, 2, 2, 8, 8, 64, softcap=2.0), HOST, ()) is None
    theirs = Variant("theirs", "torch", ("host",), lambda problem, arch: None, features=frozenset({"softcap"}))
    choice = choose(host_profile(), AttentionProblem(1, 2, 2, 64, 64, 64, softcap=2.0), variants=(kernel(), theirs))
    assert choice.nearest == "in float16, without softcap"


def test_a_refusal_says_what_would_be_served():
    problem = AttentionProblem(1, 2, 2, 64, 64, 64, softcap=2.0)
    assert choose(host_profile(), problem).nearest == "without softcap"
    with pytest.raises(UnsupportedError, match="a tuned kernel would serve the same call without softcap"):
        choose(host_profile(), problem, only="smscope")
