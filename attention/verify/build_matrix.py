"""Our CUDA kernels as jobs of the build matrix: which builds there are, and what each must keep. No GPU, no torch.

By default these are the builds that the committed profiles make the chooser pick, one for each head dim, causality,
length and feature. EVERY legal configuration with every feature takes minutes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import compress, product
from typing import Any, ClassVar

import numpy as np

from attention import features
from attention.choose.choose import choose
from attention.feature import Feature
from attention.kernels.common.spills import allowed_bytes
from attention.kernels.launch.source import source_of
from attention.problem import AttentionProblem
from attention.variant import Config, CudaBuild, Variant, shipped
from microbench.machine import arch as archs
from microbench.machine.arch import Arch
from microbench.probe import Budget
from microbench.results.profile import Profile, available
from microbench.verify.matrix import Job
from microbench.verify.rules import Whole
from microbench.verify.tables import BuildRow

HEAD_DIMS = (64, 96, 128, 192, 256)
UNLIKE = ((192, 128), (128, 64), (64, 256))  # head and value dims of multi-head latent attention, and either way
BETWEEN = (48, 80, 112, 160)  # held between those that kernels are tuned at: diffusion and vision models ask for them
DIMS = (*((each, each) for each in (*HEAD_DIMS, *BETWEEN)), *UNLIKE)
FEW, FEW_HEADS = 8, 4  # queries, and heads of keys, of a step of decoding
FEW_TILES = 1024  # queries of as many heads, of a kernel that deals their keys to all SMs
CELLS = ((16, 1024), (4, 4096), (1, 16384))  # batch and length: 16 Ki tokens, as FlashAttention's benchmark has it


def long(**fields: Any) -> AttentionProblem:
    """One head dim and length at which every feature is compiled."""
    given = {"dtype": "bfloat16", "device": "cuda", **fields}
    return AttentionProblem(1, 16, 16, 4096, 4096, 128, **given)


LONG = long()


def drawn(feature: Feature) -> dict[str, Any]:
    """Fields of a problem that asks for a feature, the same each time."""
    return feature.drawn(np.random.default_rng(0), frozenset())


def alternatives(feature: Feature) -> tuple[dict[str, Any], ...]:
    """The same, of each define where no two are asked together."""
    if not (feature.device and feature.device.one_define):
        return (drawn(feature),)
    names = (define.name for define in feature.device.defines)
    return tuple(feature.drawn(np.random.default_rng(0), frozenset({name})) for name in names)


# What our kernels have device code for, but the band, whose problems are spelled out.
DRAWN = tuple(each for each in features.FEATURES if each.device and "causal" not in dict(each.fields))
# A causal problem with one thing more; the last has all that a call may ask for together (a mask comes alone).
FEATURES: tuple[AttentionProblem, ...] = (
    long(dtype="float16", causal=True),
    long(window=(1024, 0)),
    long(causal=True, varlen=True, alignment="bottom_right"),
    *(long(causal=True, **each) for feature in DRAWN for each in alternatives(feature)),
    long(window=(1024, 1024), varlen=True, softcap=50.0, alibi=True, sinks=True),
)
# Together these take registers that none of them alone takes, and more than with ALiBi as well.
CROWDED = long(window=(1024, 0), varlen=True, alignment="bottom_right", softcap=50.0)
EVERY = (LONG, long(causal=True), *FEATURES, CROWDED)


class AttentionRow(BuildRow):
    """One attention kernel of one head dim: the configurations and features that `python -m attention check` builds."""

    folder: ClassVar[str] = "kernels"


def combinations() -> Iterator[AttentionProblem]:
    """Everything that calls may ask for together, each build once: a mask comes beside a band and a softcap alone."""
    alone = [each for feature in DRAWN if _comes_alone(feature) for each in alternatives(feature)]
    others = [drawn(feature) for feature in DRAWN if not _comes_alone(feature)]
    for causal, left, varlen, *chosen in product((False, True), repeat=3 + len(others)):
        asked = {name: value for fields in compress(others, chosen) for name, value in fields.items()}
        yield long(causal=causal, window=(1024 if left else -1, -1), varlen=varlen, **asked)
    for asked in alone:
        for causal, left, softcap in product((False, True), (False, True), (0.0, 50.0)):
            yield long(causal=causal, window=(1024 if left else -1, -1), softcap=softcap, **asked)


def with_feature(feature: Feature) -> tuple[AttentionProblem, ...]:
    """What a call may ask for beside a feature: nothing, causality, and the company that takes most registers."""
    found: list[AttentionProblem] = []
    for asked in alternatives(feature):
        crowded = () if _comes_alone(feature) else (replace(CROWDED, **asked),)
        found += [long(**asked), long(causal=True, **asked), *crowded]
    return tuple(found)


def _comes_alone(feature: Feature) -> bool:
    return feature.device is not None and feature.device.hides


def jobs(
    variants: Sequence[Variant] | None = None,
    wanted: Sequence[str] = (),
    asked: Sequence[AttentionProblem] = (),
) -> list[Job]:
    """Builds of each variant that is a CUDA kernel of ours, on the wanted architectures (all of its own by default).

    Every legal configuration for what is `asked`, at each head dim; by default those of the chooser's picks.
    """
    return [
        job
        for variant in (shipped() if variants is None else variants)
        if variant.builds
        for arch in archs.ARCHS
        if arch.name in variant.archs and (not wanted or arch.name in wanted)
        for job in _jobs(variant, arch, asked)
    ]


def _jobs(variant: Variant, arch: Arch, asked: Sequence[AttentionProblem]) -> Iterator[Job]:
    seen: set[CudaBuild] = set()  # one of several head dims that are held alike goes by the first of them
    for problem, config in _all(variant, arch, asked) if asked else _picked(variant, arch):
        unlike = f" dv={problem.head_dim_v}" if problem.head_dim_v != problem.head_dim else ""
        kernel = f"{variant.path} d={problem.head_dim}{unlike}"
        for build in variant.steps(problem, config):
            if build not in seen:
                seen.add(build)
                source = source_of(variant.folder, build, arch)
                # Lengths decide whether neighbouring blocks share keys: that one configuration is two builds.
                shared = " shared_keys" if dict(build.defines).get("SHARED_KEYS") else ""
                label = f"{_asked(problem)} {config}{shared}"
                yield Job(kernel, arch.name, label, source, _rules(variant, build, arch))


def _rules(variant: Variant, build: CudaBuild, arch: Arch) -> Whole:
    assert arch.limits is not None
    registers = arch.limits.registers // build.threads // 8 * 8  # a warp's registers come in steps of 8 a thread
    budget = Budget(min(255, registers), arch.limits.smem_bytes_per_block)
    return Whole(variant.signature, budget, build.smem_bytes, allowed_bytes(variant, build))


def _all(variant: Variant, arch: Arch, asked: Sequence[AttentionProblem]) -> Iterator[tuple[AttentionProblem, Config]]:
    for dims in DIMS:
        for each in asked:
            problem = as_served(variant, at(each, *dims), arch)
            yield from ((problem, config) for config in legal(variant, problem, arch))


def as_served(variant: Variant, problem: AttentionProblem, arch: Arch) -> AttentionProblem:
    """The problem as a kernel serves it: in float16 where it has no bfloat16, of few queries or few heads."""
    if problem.dtype == "bfloat16" and variant.refuses(problem, arch):
        problem = replace(problem, dtype="float16")
    few_queries = replace(problem, heads_kv=FEW_HEADS, seq_q=FEW)
    few_tiles = replace(problem, dtype="bfloat16", batch=1, heads_q=FEW_HEADS, heads_kv=FEW_HEADS, seq_q=FEW_TILES)
    return next((each for each in (problem, few_queries, few_tiles) if not variant.refuses(each, arch)), problem)


def at(problem: AttentionProblem, head_dim: int, head_dim_v: int = 0) -> AttentionProblem:
    """The problem with these dims, the value's the same where it is not said."""
    return replace(problem, head_dim=head_dim, head_dim_v=head_dim_v or head_dim, scale=None)


def _picked(variant: Variant, arch: Arch) -> Iterator[tuple[AttentionProblem, Config]]:
    asked = []
    for head_dim in HEAD_DIMS:
        for batch, length in CELLS:
            for causal in (False, True):
                sizes = (batch, 16, 16, length, length, head_dim)
                asked.append(AttentionProblem(*sizes, dtype="bfloat16", causal=causal))
        asked.append(at(CROWDED, head_dim))
    more = DIMS[len(HEAD_DIMS) :]
    asked += [at(problem, *dims) for dims in more for problem in (LONG, CROWDED)]
    for each in (*asked, *FEATURES):
        problem = as_served(variant, each, arch)
        yield from ((problem, config) for config in _picks(variant, problem, arch))


def _picks(variant: Variant, problem: AttentionProblem, arch: Arch) -> tuple[Config, ...]:
    """The chooser's picks on each measured GPU of this architecture; the largest tile where none was measured."""
    able = legal(variant, problem, arch)
    if not able or variant.tile is None:
        return able[:1]
    profiles = [profile for profile in _profiles() if profile.arch == arch.name]
    if profiles:
        return tuple(choose(profile, problem, variants=(variant,)).pick.config for profile in profiles)
    sizes = {config: variant.tile(problem, config) for config in able}
    return (max(able, key=lambda config: sizes[config].rows * sizes[config].columns),)


def legal(variant: Variant, problem: AttentionProblem, arch: Arch) -> tuple[Config, ...]:
    """The configurations that may serve a problem; none where the variant refuses it."""
    if variant.refusal(problem, arch):
        return ()
    illegal = variant.illegal
    return tuple(config for config in variant.configs() if illegal is None or not illegal(problem, config, arch))


@cache
def _profiles() -> tuple[Profile, ...]:
    return tuple(Profile.load(gpu) for gpu in available())


def _asked(problem: AttentionProblem) -> str:
    words = (problem.dtype, "causal" if problem.causal else "full", *problem.features, problem.mask_dtype)
    return " ".join(filter(None, words))
