"""The sm100a forward holds every company of features in registers: what is legal spills nothing, and has no note."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from attention.kernels.launch.source import source_of
from attention.problem import AttentionProblem
from attention.variant import Config, by_path
from attention.verify.build_matrix import DIMS, at, combinations, legal, long
from attention.verify.builds import builds_of, problem_of
from microbench.compile import require_all
from microbench.machine.arch import by_name

VARIANT = by_path("sm100a/forward/tensor_memory")
# Value dims unlike head dims, beside those of the build matrix.
MORE = ((256, 128), (256, 64), (192, 144), (64, 48), (16, 240))
# All that packed sequences may ask for without a band, which a pair of blocks refuses.
CROWD = long(varlen=True, ranges=True, sinks=True, softcap=50.0, alibi=True)


def spilling(problem: AttentionProblem, config: Config, arch: str) -> Iterator[str]:
    """What ptxas spills or notes of one build."""
    sources = [source_of(VARIANT.folder, build, by_name(arch)) for build in VARIANT.steps(problem, config)]
    for cubin in require_all(sources):
        if cubin.resources.spills or cubin.notes:
            yield f"{arch} {problem} {config}: {cubin.resources} {cubin.notes}"


def last_of_each_group(problem: AttentionProblem, arch: str) -> dict[int, Config]:
    """Of one block and of a pair the last configuration that is legal: of most keys and polynomials."""
    return {config["cta_group"]: config for config in legal(VARIANT, problem, by_name(arch))}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("dims", [(128, 128), (256, 256), (192, 128), (256, 128)], ids=str)
def test_packed_sequences_with_every_other_feature_spill_nothing(dims: tuple[int, int]) -> None:
    problem = at(CROWD, *dims)
    found = last_of_each_group(problem, "sm100a")
    assert found.keys() == ({1} if dims == (256, 128) else {1, 2})
    assert [said for config in found.values() for said in spilling(problem, config, "sm100a")] == []


def test_a_pair_whose_correction_has_no_register_left_says_so() -> None:
    """ptxas spilled 8 bytes of it."""
    assert VARIANT.illegal is not None
    pair = Config((("tile_keys", 64), ("polynomial", 0), ("dynamic", 0), ("cta_group", 2)))
    assert "no register left" in str(VARIANT.illegal(at(CROWD, 256, 128), pair, by_name("sm100a")))
    packed = at(long(varlen=True, sinks=True, softcap=50.0, alibi=True), 256, 128)
    assert VARIANT.illegal(packed, pair, by_name("sm100a")) is None


# Companies that campaigns draw. With 128 keys ptxas spilled 48 bytes of the first, and 72 of the second by pairs.
@pytest.mark.parametrize(("head_dim", "asked"), [(96, "ALIBI BIAS CAUSAL"), (128, "ALIBI BIAS32 RANGES SINKS VARLEN")])
def test_a_mask_beside_other_features_has_half_of_the_keys_and_spills_nothing(head_dim: int, asked: str) -> None:
    problem = problem_of(head_dim, "bfloat16", frozenset(asked.split()))
    found = last_of_each_group(problem, "sm100a")
    assert found and {config["tile_keys"] for config in found.values()} == {64}
    assert [said for config in found.values() for said in spilling(problem, config, "sm100a")] == []
    alone = replace(problem, alibi=False, sinks=False, ranges=False, varlen=False)
    assert {config["tile_keys"] for config in legal(VARIANT, alone, by_name("sm100a"))} == {128}


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("arch", VARIANT.archs)
def test_what_a_campaign_on_a_gpu_compiles_spills_nothing(arch: str) -> None:
    sources = [source for build in builds_of(VARIANT.path, arch) for source in build.sources]
    assert [cubin.log for cubin in require_all(sources) if cubin.resources.spills or cubin.notes] == []


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("arch", VARIANT.archs)
def test_no_company_of_features_spills_at_any_head_dim(arch: str) -> None:
    """Companies and configurations take turns: all of them at every head dim would take a day."""
    asked, found = tuple(combinations()), list[str]()
    for turn, dims in enumerate((*DIMS, *MORE)):
        for number in range(turn % 8, len(asked), 8):
            problem = at(asked[number], *dims)
            able = legal(VARIANT, problem, by_name(arch))
            found += spilling(problem, able[(7 * number + turn) % len(able)], arch)
    assert found == []
