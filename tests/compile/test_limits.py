"""The limits on file are what this toolchain says: the most keys of a tile that ptxas holds in registers."""

from dataclasses import replace

import pytest

from attention.kernels.common.family import HEAD_DIMS, SERVED, asked_defines
from attention.kernels.common.spills import NAME, Spills, allowed_bytes, spills_of
from attention.kernels.launch.source import source_of, sources_of
from attention.problem import AttentionProblem
from attention.variant import Config, Variant, by_path, shipped
from attention.verify.build_matrix import CROWDED, UNLIKE, as_served, at, combinations, legal, long
from attention.verify.limits import toolchain, walks
from microbench.compile import require_all
from microbench.machine.arch import Arch, by_name

OURS = [variant for variant in shipped() if (variant.folder / NAME).is_file()]
LATE = (72,), (104,), (152,), (216,)  # whose rows begin within sectors, which takes addresses of their own
READ_LATE = "sm80", "sm90a"  # whose kernels read such rows from the sector's begin
each_of_ours = pytest.mark.parametrize("variant", OURS, ids=lambda variant: variant.path)


def on_file(variant: Variant) -> Spills:
    known = spills_of(variant.folder)
    if toolchain(variant) != known.nvrtc:
        pytest.skip(f"the limits are NVRTC {known.nvrtc}'s, and another one counts registers otherwise")
    return known


# What these features ask for together has spilled in tiles that were legal at both of these head dims.
@pytest.mark.timeout(600)
@each_of_ours
def test_the_limits_of_crowded_tiles_are_what_ptxas_says(variant: Variant) -> None:
    known, all_served = on_file(variant), variant.features >= SERVED
    crowded = asked_defines(CROWDED) if all_served else frozenset({"CAUSAL", "VARLEN"})
    sampled = [walk for walk in walks(variant) if walk.company == crowded and walk.shape[0] in (64, 256)]
    assert len(sampled) >= (4 if all_served else 3)
    for walk in sampled:
        assert walk.most() == known.most_keys[walk.shape][crowded], "run `attention check --limits`"


@pytest.mark.slow
@pytest.mark.timeout(1800)
@each_of_ours
def test_limits_throughout_the_file_are_what_ptxas_says(variant: Variant) -> None:
    """One walk in sixteen: all of them take an hour, and `attention check --limits` is what they are."""
    known = on_file(variant)
    for walk in list(walks(variant))[::16]:
        assert walk.most() == known.most_keys[walk.shape][walk.company], "run `attention check --limits`"


@each_of_ours
def test_every_company_that_is_walked_is_on_file(variant: Variant) -> None:
    limits = spills_of(variant.folder).most_keys
    assert {(each.shape, each.company) for each in walks(variant)} == {
        (shape, company) for shape, of_shape in limits.items() for company in of_shape
    }


def largest(variant: Variant, problem: AttentionProblem, arch: Arch) -> list[Config]:
    """Of each shape the legal tile of most keys."""
    able = sorted(legal(variant, problem, arch), key=lambda each: each["tile_keys"])
    assert able, f"{variant.path}: {problem}"
    return list({tuple(each for each in config.values if each[0] != "tile_keys"): config for config in able}.values())


def spilling(variant: Variant, asked: AttentionProblem, arch: str, *dims: int) -> list[str]:
    """What spills more than it may of that which a head dim between, or a value dim unlike, takes by the limits."""
    problem = as_served(variant, at(asked, *dims), by_name(arch))
    if variant.refusal(problem, by_name(arch)):
        return []
    return [
        f"{problem} {config}"
        for config in largest(variant, problem, by_name(arch))
        for build in variant.steps(problem, config)
        for cubin in require_all([source_of(variant.folder, build, by_name(arch))])
        if cubin.resources.spills_beyond(allowed_bytes(variant, build))
    ]


def beside(variant: Variant) -> tuple[tuple[int, ...], ...]:
    """Head dims, and value dims, that builds differ by and no limit is on file for."""
    return (*LATE, *UNLIKE) if variant.path.startswith(READ_LATE) else UNLIKE


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("variant", "dims"),
    [
        pytest.param(each, dims, id=f"{each.path}-{dims}")
        for each in OURS
        for dims in ((48,), (112,), (240,), *beside(each))
    ],
)
def test_what_is_on_file_under_no_limit_of_its_own_spills_nothing_by_the_next_ones(
    variant: Variant, dims: tuple[int, ...]
) -> None:
    on_file(variant)
    for asked in (long(causal=True), long(causal=True, mask="bool")):
        assert spilling(variant, asked, variant.archs[0], *dims) == []


@pytest.mark.timeout(600)
def test_packed_windows_of_wide_heads_hold_64_keys_and_spill_what_is_allowed() -> None:
    variant, arch = by_path("sm90a/forward/warp_specialised"), by_name("sm90a")
    on_file(variant)
    problem = at(long(causal=True, window=(1023, 0), varlen=True, tokens_q=8192, tokens_kv=8192), 256)
    (config,) = legal(variant, problem, arch)
    (build,) = variant.steps(problem, config)
    (cubin,) = require_all(sources_of(variant, problem, config, arch))
    assert config["tile_keys"] == 64
    assert 0 < cubin.resources.spill_store_bytes <= allowed_bytes(variant, build) == 64


# Causal and packed companies are the crowded ones that heads may share rows in; a group of 7 leaves a row to nobody.
@pytest.mark.timeout(600)
@pytest.mark.parametrize("path", ["sm90a/forward/split_keys", "sm90a/forward/warp_specialised"])
@pytest.mark.parametrize(("heads", "dim"), [(8, 64), (7, 64), (7, 80), (8, 128)])
def test_rows_that_heads_of_a_group_share_spill_nothing(path: str, heads: int, dim: int) -> None:
    variant, arch = by_path(path), by_name("sm90a")
    on_file(variant)
    asked = replace(
        long(causal=True), heads_q=4 * heads, heads_kv=4, seq_q=8, seq_kv=4096, head_dim=dim, head_dim_v=dim
    )
    for problem in (asked, replace(asked, varlen=True, tokens_q=16, tokens_kv=8192)):
        sources = [
            source
            for config in largest(variant, problem, arch)
            for source in sources_of(variant, problem, config, arch)
        ]
        assert all(("PACK_GQA", heads) in source.defines for source in sources)
        assert not [
            source.defines
            for source, cubin in zip(sources, require_all(sources), strict=True)
            if cubin.resources.spills
        ]


@pytest.mark.slow
@pytest.mark.timeout(3600)
@each_of_ours
@pytest.mark.parametrize("asked", list(combinations()), ids=str)
def test_nothing_between_the_head_dims_on_file_spills(variant: Variant, asked: AttentionProblem) -> None:
    known = on_file(variant)
    between = ((each,) for each in range(16, 257, 16) if each not in HEAD_DIMS)
    for dims in (*between, *LATE, *UNLIKE):
        for arch in known.archs:
            assert spilling(variant, asked, arch, *dims) == []
