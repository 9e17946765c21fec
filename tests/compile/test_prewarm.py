"""attention.prewarm compiles into the cache that a launch reads, once."""

from attention import AttentionProblem, prewarm
from attention.kernels.launch.loaded import cubin_of
from attention.variant import by_path
from microbench import paths
from microbench.machine.arch import by_name


def test_a_launch_finds_what_was_compiled_ahead_and_a_second_time_compiles_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv(paths.CACHE_VARIABLE, str(tmp_path))
    problem = AttentionProblem(1, 2, 2, 600, 600, 64, dtype="bfloat16", device="cuda")
    first = prewarm([problem, problem], gpu="h200-sxm-141gb")
    assert (first.compiled, first.kept, first.refused) == (1, 0, ())
    (served,) = first.served
    variant = by_path(served.variant)
    (build,) = (step for step in variant.steps(problem, served.config))
    assert cubin_of(variant.folder, build, by_name("sm90a")).from_cache
    assert (prewarm([problem], gpu="h200-sxm-141gb").kept, first.arch) == (1, "sm90a")
