"""Which tiles spill: each shape and company of features is walked from the limit on file to where ptxas spills.

In bfloat16 where the kernel serves it, and in every company that calls may ask for (build_matrix.combinations) but
those of what is free. What was compiled stays in the cubin cache, so that a walk that was cut off goes on.
"""

from bisect import bisect_right
from collections.abc import Iterator
from concurrent.futures import as_completed
from dataclasses import dataclass, replace
from itertools import groupby

from attention.kernels.common.family import HEAD_DIMS, asked_defines
from attention.kernels.common.spills import Company, Shape, Spills, spills_of
from attention.kernels.launch.source import source_of
from attention.variant import CudaBuild, Variant
from attention.verify.build_matrix import as_served, at, combinations
from microbench.compile import Source, require_all
from microbench.compile.nvrtc import DEFAULT, choose
from microbench.console.processes import beside
from microbench.console.progress import watching
from microbench.errors import BuildError
from microbench.machine.arch import by_name


@dataclass(frozen=True)
class Tile:
    """A tile of so many keys, on each architecture that has room for it."""

    keys: int
    sources: tuple[Source, ...]
    allowed_bytes: int = 0

    def spills(self) -> bool:
        """Whether ptxas spills anywhere more than is allowed, or serialises products for want of registers."""
        try:  # one after another: a tile that spills on the first need not be compiled for the others
            made = (cubin for each in self.sources for cubin in require_all([each]))
            return any(cubin.resources.spills_beyond(self.allowed_bytes) for cubin in made)
        except BuildError:
            return True


@dataclass(frozen=True)
class Walk:
    """The tiles of a shape in one company, the smallest first, and the limit on file."""

    shape: Shape
    company: Company
    tiles: tuple[Tile, ...]
    start: int

    def most(self) -> int:
        """Down to a tile that holds, then up to one that does not."""
        held = bisect_right(self.tiles, self.start, key=lambda tile: tile.keys)
        while held and self.tiles[held - 1].spills():
            held -= 1
        while held < len(self.tiles) and not self.tiles[held].spills():
            held += 1
        return self.tiles[held - 1].keys if held else 0


def walks(variant: Variant) -> Iterator[Walk]:
    """Every company of each shape that a variant's file names, on the architectures that it names."""
    known, arch = spills_of(variant.folder), by_name(variant.archs[0])
    for asked in combinations():
        company = asked_defines(asked)
        for head_dim in () if company & known.free else HEAD_DIMS:
            problem = as_served(variant, at(asked, head_dim), arch)
            if not set(problem.features) <= variant.features:
                continue
            builds = [build for config in variant.configs() for build in variant.steps(problem, config)]
            builds.sort(key=lambda build: (known.shape_of(build), _keys(build)))
            for shape, of_shape in groupby(builds, key=known.shape_of):
                tiles = (_tile(variant, keys, tuple(each), known) for keys, each in groupby(of_shape, key=_keys))
                limits = known.most_keys.get(shape)
                if limits is not None:
                    yield Walk(shape, company, tuple(tile for tile in tiles if tile.sources), limits.get(company, 0))


def walked(variant: Variant) -> Spills:
    """What ptxas says now. Raises EnvironmentLacks, DataError."""
    todo, most_keys = list(walks(variant)), dict[Shape, dict[Company, int]]()
    with watching(len(todo)) as watch, beside() as pool:
        running = {pool.submit(walk.most): walk for walk in todo}
        for done in as_completed(running):
            walk = running[done]
            most_keys.setdefault(walk.shape, {})[walk.company] = done.result()
            watch.doing("spills", variant.path)
            watch.finished()
    return replace(spills_of(variant.folder), nvrtc=toolchain(variant), most_keys=most_keys)


def toolchain(variant: Variant) -> str:
    """The NVRTC that is here for a variant, as microbench.compile names it. Raises EnvironmentLacks."""
    major, minor = by_name(variant.archs[0]).compute_capability
    return choose(DEFAULT, 10 * major + minor).version


def _tile(variant: Variant, keys: int, builds: tuple[CudaBuild, ...], known: Spills) -> Tile:
    """Configurations of so many keys: some differ in no define, and longer rings have limits of their own."""
    shortest = min(map(_stages, builds))
    each = dict.fromkeys(build for build in builds if _stages(build) == shortest)
    sources = tuple(source for build in each for source in _sources(variant, build, known))
    return Tile(keys, sources, known.allowed_bytes(builds[0]))


def _keys(build: CudaBuild) -> int:
    return int(dict(build.defines)["TILE_KEYS"])


def _stages(build: CudaBuild) -> int:
    return int(dict(build.defines).get("STAGES", 0))


def _sources(variant: Variant, build: CudaBuild, known: Spills) -> Iterator[Source]:
    for arch in map(by_name, known.archs):
        if arch.limits and build.smem_bytes <= arch.limits.smem_bytes_per_block:
            yield source_of(variant.folder, build, arch)
