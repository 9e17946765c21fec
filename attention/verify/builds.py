"""Which kernels the random campaign runs: a fixed sample of every variant's builds, compiled before a GPU is at hand.

Every head dim gets as many builds as it has legal configurations in both dtypes, and no fewer than LEAST_PER_BUCKET;
among them is every feature, alone and in company. The sample does not depend on the campaign's seed: any problem drawn
meets a compiled kernel.
"""

import importlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import cycle, islice, product
from typing import Any

import numpy as np

from attention.errors import ProblemError
from attention.features import FEATURES
from attention.kernels.common.family import VARLEN, asked_defines
from attention.kernels.launch.source import sources_of
from attention.problem import AttentionProblem
from attention.variant import Config, CudaBuild, Variant, by_path, shipped
from attention.verify.build_matrix import UNLIKE
from microbench.compile import Defines, Source
from microbench.machine.arch import Arch, by_name

ARCH = "sm90a"  # what is compiled for where no GPU is named: the architecture of the committed campaigns
BUCKETS = ((1, 64), (65, 96), (97, 128), (129, 192), (193, 256))  # head dims up to those that kernels are tuned at
LEAST_PER_BUCKET = 24  # builds: two variants stay within 400
DTYPES = ("bfloat16", "float16")
HEADS = (2, 4, 2)  # batch, and heads of Q and of K, of the problem that stands for a build
MANY_QUERIES = KEYS = 500
CACHE = 4000  # keys of few rows

# What decides which code is compiled, a feature's defines and VARLEN: edges of a band, not where they lie.
Asked = frozenset[str]
DEFINES = tuple(define for feature in FEATURES if feature.device for define in feature.device.defines)
NAMES = (*(define.name for define in DEFINES), VARLEN)
SHARES = (*(define.share for define in DEFINES), 0.35)
# Each by itself, where it is commonly met, before any mixture.
COMMON = (
    *("", "CAUSAL", "CAUSAL WINDOW", "WINDOW", "SOFTCAP", "CAUSAL ALIBI", "CAUSAL SINKS", "MASK", "BIAS"),
    *("CAUSAL BIAS32", "RANGES", "CAUSAL RANGES", "CAUSAL WINDOW ALIBI SINKS RANGES", "CAUSAL RANGES VARLEN"),
    *("VARLEN", "CAUSAL VARLEN", "CAUSAL WINDOW SINKS VARLEN", "CAUSAL WINDOW SOFTCAP ALIBI SINKS VARLEN"),
)
PLAIN: tuple[Asked, ...] = (
    *(frozenset(names.split()) for names in COMMON),
    *(frozenset({name}) for name in NAMES if not any(name in names for names in COMMON)),
)


@dataclass(frozen=True)
class Build:
    """One kernel of the sample."""

    variant: str
    bucket: tuple[int, int]
    dtype: str
    config: Config
    asked: Asked
    arch: str = ARCH  # of the GPU, whatever generation the kernel was written for
    value_dim: int = 0  # one that no head dim of the bucket has; 0: the head dim
    dealt: bool = False  # of packed sequences so unlike that tiles are dealt by their own lengths
    few: int = 0  # rows of a tile at most, where few share one; 0: many

    @property
    def problem(self) -> AttentionProblem:
        """One problem that needs this build."""
        queries = self.few // HEADS[1] * HEADS[2] or MANY_QUERIES
        keys = CACHE if self.few else KEYS
        problem = problem_of(self.bucket[1], self.dtype, self.asked, self.value_dim, queries, keys)
        # One sequence may be as long as half of all.
        return replace(problem, batch=64, tokens_q=1000, tokens_kv=1000) if self.dealt else problem

    @property
    def defines(self) -> Defines:
        """What tells its code from that of other builds of the variant."""
        return defines_of(self.variant, self.problem, self.config)

    @property
    def sources(self) -> list[Source]:
        """What to compile, step by step."""
        return sources_of(by_path(self.variant), self.problem, self.config, by_name(self.arch))

    @property
    def written_for(self) -> Arch:
        """Whose limits its configurations keep: the GPU's, or where the kernel runs as source, its own generation's."""
        archs = by_path(self.variant).archs
        return by_name(self.arch if self.arch in archs else archs[0])


TRIES = 10_000
COMPANIES: tuple[Asked, ...] = (frozenset(), frozenset({"CAUSAL"}), frozenset(COMMON[-1].split()))
# Rows of one tile, queries of all heads that share it, in which warps share rows, or many warps have some.
FEW_ROWS = (16, 32, 128)
OF_FEW: tuple[Asked, ...] = tuple(
    frozenset(names.split()) for names in ("", "CAUSAL", "CAUSAL WINDOW SINKS VARLEN", "CAUSAL RANGES")
)


@cache
def problem_of(
    head_dim: int, dtype: str, asked: Asked, value_dim: int = 0, queries: int = MANY_QUERIES, keys: int = KEYS
) -> AttentionProblem:
    """The first random problem that asks for exactly these: an edge that is drawn may hide nothing."""
    for seed in range(TRIES):
        problem = AttentionProblem(
            *(*HEADS, queries, keys, head_dim, value_dim),
            dtype=dtype,
            device="cuda",
            varlen=VARLEN in asked,
            **fields_of(asked, np.random.default_rng(seed)),
        )
        if asked_defines(problem) == asked:
            return problem
    names = ", ".join(sorted(asked))
    raise ProblemError(
        f"None of {TRIES} random problems asks for {names}; what `drawn` of a feature gives must ask for it."
    )


def kernel_module(variant: str) -> Any:
    """The module that holds a variant's forward."""
    return importlib.import_module(by_path(variant).module)


def defines_of(variant: str, problem: AttentionProblem, config: Config) -> Defines:
    """What its kernels are compiled with for one problem."""
    return tuple(define for step in by_path(variant).steps(problem, config) for define in step.defines)


def tuned(arch: str = ARCH) -> tuple[str, ...]:
    """Paths of our CUDA kernels that a device of this architecture can run."""
    return tuple(variant.path for variant in shipped() if variant.builds and arch in variant.archs)


def as_source(arch: str) -> tuple[str, ...]:
    """Paths of our CUDA kernels of earlier generations whose source compiles for this one: they serve no call here.

    What is right as source is right but for the instructions that this generation spells otherwise (m8n8k4 of Volta is
    a routine of ptxas' elsewhere). An architecture whose name ends in a letter has instructions that no later one has.
    """
    here = by_name(arch).compute_capability
    return tuple(
        variant.path
        for variant in shipped()
        if variant.builds
        and not any(name[-1].isalpha() or by_name(name).compute_capability >= here for name in variant.archs)
    )


@lru_cache
def builds_of(path: str, arch: str = ARCH) -> tuple[Build, ...]:
    """The sample of one variant, by buckets of head dims: no two builds of the same code."""
    found: dict[Defines, Build] = {}
    for number, bucket in enumerate(BUCKETS):
        found |= _of_bucket(by_path(path), arch, bucket, np.random.default_rng([number, 1]), number)
    variant, plain = by_path(path), tuple(found.values())
    more = (_unlike(variant, arch), _between(variant, arch), _dealt(variant, plain))
    known = *plain, *(build for builds in more for build in builds)
    return *known, *_few(variant, arch, {build.defines for build in known})


def _unlike(variant: Variant, arch: str) -> Iterator[Build]:
    """Value dims unlike head dims, where they are served: alone, causal, and in company; configurations take turns."""
    turns = cycle(variant.configs())
    for head_dim, value_dim in UNLIKE:
        bucket = next(each for each in BUCKETS if head_dim <= each[1])
        for asked, dtype in zip(COMPANIES, cycle(DTYPES), strict=False):
            tried = (next(turns) for _ in variant.configs())
            able = (Build(variant.path, bucket, dtype, config, asked, arch, value_dim) for config in tried)
            yield from islice((build for build in able if legal(variant, build)), 1)


def _held(variant: Variant) -> list[tuple[int, int]]:
    """Of each head dim that a kernel holds the least and the largest that are padded to it."""
    held = sorted({variant.pads(dim) for dim in range(1, BUCKETS[-1][1] + 1)})
    return [(below + 1, head_dim) for below, head_dim in zip([0, *held], held, strict=False)]


def _between(variant: Variant, arch: str) -> Iterator[Build]:
    """Head dims that a kernel holds between those of the buckets: alone, causal, and in company.

    Configurations take turns, and so do numbers of blocks that share a row's keys.
    """
    order = np.random.default_rng(2).permutation(len(variant.configs()))
    configs, parts = [variant.configs()[at] for at in order], cycle(dict(variant.space).get("key_splits", (1,)))
    for dims in _held(variant):
        if any(dims[1] == bucket[1] for bucket in BUCKETS):
            continue
        for asked in COMPANIES:
            wanted = next(parts)
            fitting = [each for each in configs if dict(each.values).get("key_splits", 1) == wanted]
            pairs = product((0, FEW_ROWS[-1]), fitting, DTYPES)  # so many blocks may be for few rows alone
            builds = (Build(variant.path, dims, dtype, each, asked, arch, few=few) for few, each, dtype in pairs)
            yield from islice((build for build in builds if legal(variant, build)), 1)


def _few(variant: Variant, arch: str, known: set[Defines]) -> Iterator[Build]:
    """Few rows at every head dim that a kernel holds, where they take code of their own: all else takes turns."""
    companies, configs, count = cycle(OF_FEW), cycle(variant.configs()), len(variant.configs())
    for dims, few in product(_held(variant), FEW_ROWS):
        asked, tried = next(companies), islice(configs, count)
        builds = (
            Build(variant.path, dims, dtype, config, asked, arch, few=few) for config, dtype in product(tried, DTYPES)
        )
        able = (build for build in builds if legal(variant, build) and build.defines not in known)
        for build in islice((build for build in able if _is_of_few(variant, build)), 1):
            known.add(build.defines)
            yield build


def _is_of_few(variant: Variant, build: Build) -> bool:
    """Whether many rows have other code, or are not served by such a configuration."""
    many = replace(build, few=0)
    return not legal(variant, many) or build.defines != many.defines


def _dealt(variant: Variant, builds: tuple[Build, ...]) -> Iterator[Build]:
    """Of each head dim one for packed sequences of very unlike lengths, by turns with and without causality."""
    for number, bucket in enumerate(BUCKETS):
        packed = (build for build in builds if build.bucket == bucket and VARLEN in build.asked)
        fitting = (replace(each, dealt=True) for each in packed if ("CAUSAL" in each.asked) == bool(number % 2))
        yield from islice((build for build in fitting if legal(variant, build)), 1)


def _of_bucket(
    variant: Variant, arch: str, bucket: tuple[int, int], rng: np.random.Generator, turn: int
) -> dict[Defines, Build]:
    """Every feature, each with the configuration used least; then every configuration, with mixtures of features."""
    found: dict[Defines, Build] = {}
    pairs = list(product(DTYPES, told_apart(variant, problem_of(bucket[1], DTYPES[1], frozenset()), turn)))
    mixed = (pairs[at] for at in rng.permutation(len(pairs)))
    every = [Build(variant.path, bucket, dtype, config, frozenset(), arch) for dtype, config in mixed]
    used = {plain: 0 for plain in every if any(legal(variant, replace(plain, asked=asked)) for asked in PLAIN)}

    def take(build: Build, plain: Build) -> None:
        used[plain] += 1
        found.setdefault(build.defines, build)

    for asked in PLAIN:
        fitting = [plain for plain in used if legal(variant, replace(plain, asked=asked))]
        if fitting:
            plain = min(fitting, key=used.__getitem__)
            take(replace(plain, asked=asked), plain)
    wanted = max(LEAST_PER_BUCKET, len(used))
    for _ in range(20 * wanted):  # a variant of few configurations may have fewer builds
        if len(found) == wanted or not used:
            break
        plain = min(used, key=used.__getitem__)
        mixtures = (replace(plain, asked=asked) for asked in (*(_mixture(rng) for _ in range(30)), *PLAIN))
        take(next(build for build in mixtures if legal(variant, build)), plain)
    return found


def told_apart(variant: Variant, problem: AttentionProblem, turn: int = 0) -> tuple[Config, ...]:
    """One configuration of each code: those that a launch deals otherwise run the same, and take turns."""
    alike: dict[tuple[CudaBuild, ...], list[Config]] = {}
    for config in variant.configs():
        alike.setdefault(variant.steps(problem, config), []).append(config)
    in_turn = (each[turn % len(each) :] + each[: turn % len(each)] for each in alike.values())
    return tuple(next(_legal_of(variant, problem, each), each[0]) for each in in_turn)


def _legal_of(variant: Variant, problem: AttentionProblem, configs: Sequence[Config]) -> Iterator[Config]:
    """Those that are legal on the first of its architectures that has any come first."""
    for arch in map(by_name, variant.archs):
        yield from (each for each in configs if variant.illegal is None or variant.illegal(problem, each, arch) is None)


def legal(variant: Variant, build: Build) -> bool:
    """Whether the variant serves this build's problem with this configuration."""
    problem, arch = build.problem, build.written_for
    if variant.refusal(problem, arch) is not None:
        return False
    return variant.illegal is None or variant.illegal(problem, build.config, arch) is None


def _mixture(rng: np.random.Generator) -> Asked:
    drawn = rng.random(len(NAMES)) < SHARES
    found = {name for name, asked in zip(NAMES, drawn, strict=True) if asked}
    for device in (feature.device for feature in FEATURES if feature.device and feature.device.one_define):
        found -= set([define.name for define in device.defines if define.name in found][1:])
    return frozenset(found)


def fields_of(asked: Asked, rng: np.random.Generator) -> dict[str, Any]:
    """Fields of a random problem that asks for these."""
    found: dict[str, Any] = {}
    for feature in FEATURES:
        own = {define.name for define in feature.device.defines} if feature.device else set()
        if own & asked:
            found |= feature.drawn(rng, asked)
    return found
