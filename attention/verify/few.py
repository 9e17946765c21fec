"""A few problems that meet every feature, head dims 64, 128 and 256 and both dtypes: what a slow tool is given."""

from dataclasses import replace

from attention.kernels.common.family import VARLEN
from attention.variant import by_path
from attention.verify.builds import ARCH, Build, builds_of
from attention.verify.problems import Case, Limits, case_of

BUCKETS = ((1, 64), (97, 128), (193, 256))
# Some tiles of rows and keys, none of them whole, and a ring that comes round; a tool takes a thousand times as long.
FEW = Limits(shortest=385, longest=450, pairs=10**6, elements=2**20)
# More tiles of rows than an H100 has SMs: blocks that stay take a second one. Fewer where parts of their keys count.
MANY = replace(FEW, heads=(1, 4, 12), pairs=10**7, elements=2**23)
MANY_PARTS = replace(MANY, heads=(1, 4, 2))


def checked(variants: tuple[str, ...], seed: int, arch: str = ARCH) -> list[Case]:
    """A few cases of each variant, numbered in order. The last of a variant has many heads."""
    found = [covering(variant, arch) for variant in variants]
    chosen = [(build, build is few[-1]) for few in found for build in few]
    return [case_of(build, i, seed, _many(build) if many else FEW) for i, (build, many) in enumerate(chosen)]


def _many(build: Build) -> Limits:
    """Of a kernel that is for few tiles of rows, as many as it takes."""
    assert MANY.heads is not None
    batch, heads_kv, group = MANY.heads
    tokens = MANY.longest if build.problem.varlen else 0
    rows = replace(build.problem, batch=batch, seq_q=MANY.longest, tokens_q=batch * tokens)
    problem = replace(rows, heads_q=heads_kv * group, heads_kv=heads_kv)
    return MANY_PARTS if by_path(build.variant).refusal(problem, build.written_for) else MANY


def covering(variant: str, arch: str = ARCH) -> list[Build]:
    """Few builds of the sample that have everything in it; packed ones first, whose sequences are short."""
    sample = [build for build in builds_of(variant, arch) if build.bucket in BUCKETS]
    wanted = set().union(*(_traits(build) for build in sample))
    chosen: list[Build] = []
    while wanted:
        chosen.append(max(sample, key=lambda build: len(_traits(build) & wanted)))
        wanted -= _traits(chosen[-1])
    return sorted(chosen, key=lambda build: VARLEN not in build.asked)


def _traits(build: Build) -> set[object]:
    asked = build.asked or {"no feature"}
    # Blocks that share a row's keys run the same code, however many they are.
    values = ((name, value > 1 if name == "key_splits" else value) for name, value in build.config.values)
    others = {each for each in values if each[0] != "tile_keys"}
    return {build.bucket, build.dtype, *asked, *others}
