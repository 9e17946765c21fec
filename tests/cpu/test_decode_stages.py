"""Tiles of keys in shared memory of the sm80 kernel for few rows: which builds have how many, and which is chosen."""

from dataclasses import replace

import pytest

from attention.choose.model import predict
from attention.problem import AttentionProblem
from attention.timed.named import config_of
from attention.timed.timing_faults import of_config
from attention.variant import Config, by_path
from microbench.machine.arch import by_name
from microbench.results.profile import Profile

KERNEL = by_path("sm80/forward/split_keys")
ONE = AttentionProblem(1, 32, 8, 1, 16384, 64, dtype="bfloat16", device="cuda")
OLDER = {"warps": 4, "tile_keys": 128, "key_splits": 16}  # a timing's, of before there was such an axis
STAGES = dict(KERNEL.space)["key_stages"]


def config(key_stages: int, **axes: int) -> Config:
    return Config(tuple((OLDER | axes | {"key_stages": key_stages}).items()))


def defined(problem: AttentionProblem, configuration: Config) -> tuple[int, int]:
    """Warps that share rows, and the tiles of keys that they have."""
    (build,) = KERNEL.steps(problem, configuration)
    defines = dict(build.defines)
    return int(defines["KEY_WARPS"]), int(defines["KEY_STAGES"])


@pytest.mark.parametrize(("queries", "head_dim", "stages"), [(1, 64, 2), (1, 128, 3), (16, 64, 0)])
def test_a_timing_that_is_older_than_the_axis_is_of_what_was_settled_then(queries, head_dim, stages) -> None:
    problem = replace(ONE, seq_q=queries, head_dim=head_dim, head_dim_v=head_dim)
    assert of_config(OLDER, KERNEL) is None
    assert config_of(KERNEL, problem, OLDER) == config(stages)
    assert config_of(KERNEL, problem, OLDER | {"key_stages": 3}) == config(3)


@pytest.mark.parametrize("queries", [1, 4, 8, 9, 16, 40])
@pytest.mark.parametrize("head_dim", [40, 64, 128])
@pytest.mark.parametrize("named", STAGES)
def test_a_choice_for_another_problem_of_a_class_leaves_warps_that_share_rows_their_tiles(
    queries, head_dim, named
) -> None:
    """On an H200 a build without them computed 32 queries of a class that was chosen for by 64, and was wrong."""
    problem = replace(ONE, seq_q=queries, head_dim=head_dim, head_dim_v=head_dim)
    warps, stages = defined(problem, config(named))
    assert (stages >= 2) == (warps > 1)
    said = KERNEL.illegal(problem, config(named), by_name("sm90a"))
    assert (said is None) == (stages == named) or "tiles of keys" not in str(said)


def test_three_are_predicted_to_be_faster_where_all_blocks_run_at_once_and_two_where_they_else_take_two_waves() -> None:
    profile = Profile.load("h200-sxm-141gb")

    def seconds(problem: AttentionProblem, key_stages: int, key_splits: int) -> float:
        return predict(profile, problem, KERNEL, config(key_stages, key_splits=key_splits)).seconds

    long, wide, wide_and_long = ONE, replace(ONE, batch=48, seq_kv=256), replace(ONE, batch=48, seq_kv=1024)
    assert seconds(long, 3, 16) < 0.95 * seconds(long, 2, 16)
    assert seconds(wide, 2, 1) < 0.9 * seconds(wide, 3, 1)  # an H200: 0.79 (use-29)
    assert seconds(wide_and_long, 2, 1) < 0.98 * seconds(wide_and_long, 3, 1)
