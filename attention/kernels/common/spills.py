"""Which tiles ptxas holds in registers: what `python -m attention check --limits` found, spills.json beside a variant.

What counts is the exact company of features, by their defines: two may spill where three do not. A value dim unlike
the head dim is one more of the company: it takes addresses of its own. A head dim between those on file is asked for by
the next larger one, whose outputs and fragments of Q take more registers (tests/compile/test_limits.py samples that).

A kernel may be worth a few spilled bytes where it would meet barriers too often without. The Hopper forward of packed
windows at head dim 256 holds 32 keys. 64 that spill 28 bytes took an H200 12 % less time, and 80 that spill 60 took 6
to 8 % less (data/experiments, packed_windows.csv). That is 20 of the 23 companies that hold more by it. A bias at head
dim 256 and two companies of three warpgroups at 128, which spill 4 and 8 bytes, were not timed.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from attention.kernels.common.family import asked_defines, value_defines
from attention.problem import AttentionProblem
from attention.variant import CudaBuild, Variant

NAME = "spills.json"
Shape = tuple[int, ...]
Company = frozenset[str]


@dataclass(frozen=True, eq=False)  # told apart by identity: a choice asks forty times
class Spills:
    """The most keys of a tile that do not spill, nor any fewer: 0 where every tile does.

    nvrtc      the toolchain that said so
    archs      those that it was asked for: a tile spills where it spills on one of them
    by         the defines that tell one shape from another
    free       those that take no register in the loop, in any company
    most_keys  by shape and company; which shapes there are is the kernel's to say
    few_keys   tiles of no more may spill `few_bytes` a thread (stored, loads not counted): of fewer keys are slower
    """

    nvrtc: str
    archs: tuple[str, ...]
    by: tuple[str, ...]
    free: Company
    most_keys: Mapping[Shape, Mapping[Company, int]]
    few_keys: int = 0
    few_bytes: int = 0

    def allowed_bytes(self, build: CudaBuild) -> int:
        """What a thread of a build may spill, in bytes stored."""
        keys = dict(build.defines).get("TILE_KEYS")
        return self.few_bytes if keys is not None and int(keys) <= self.few_keys else 0

    def shape_of(self, build: CudaBuild) -> Shape:
        defines = dict(build.defines)
        return tuple(int(defines[name]) for name in self.by)

    def most(self, problem: AttentionProblem, *shape: int, unlike_alone: bool = False) -> int:
        """The limit on file. Of a company that nobody compiled the least of its shape: what is new takes registers.

        `unlike_alone`: a value dim unlike the head dim takes none beside causality.
        """
        return _most(self, _company(problem, unlike_alone), shape)

    def said(self, problem: AttentionProblem, most: int, *shape: int, unlike_alone: bool = False) -> str:
        """Why a tile of more keys is none: of a shape that is not on file, any."""
        return _said(self, _company(problem, unlike_alone), most, shape)


def _company(problem: AttentionProblem, unlike_alone: bool) -> Company:
    asked = asked_defines(problem)
    if unlike_alone and asked <= {"CAUSAL"}:
        return asked
    return asked | {name for name, _ in value_defines(problem)}


@lru_cache(maxsize=4096)
def _most(spills: Spills, asked: Company, shape: Shape) -> int:
    of_shape, asked = spills.most_keys.get(shape, {}), asked - spills.free
    return of_shape[asked] if asked in of_shape else min(of_shape.values(), default=0)


@lru_cache(maxsize=4096)
def _said(spills: Spills, asked: Company, most: int, shape: Shape) -> str:
    asked -= spills.free
    named = [f"{name.lower().replace('_', ' ')} {value}" for name, value in zip(spills.by, shape, strict=True)]
    if shape not in spills.most_keys:
        return f"is not tuned for {', '.join(named)}"
    built = ", ".join([*named, *sorted(map(str.lower, asked))])
    if asked not in spills.most_keys[shape]:
        return f"may spill registers beyond {most} keys with {built}, which nobody has compiled"
    return f"spills registers beyond {most} keys with {built}"


@cache
def spills_of(folder: Path) -> Spills:
    """What is on file beside a variant."""
    kept = json.loads((folder / NAME).read_text())
    most_keys = {
        tuple(map(int, shape.split())): {frozenset(company.split()): most for company, most in of_shape.items()}
        for shape, of_shape in kept["most_keys"].items()
    }
    few = kept.get("few_keys", 0), kept.get("few_bytes", 0)
    return Spills(kept["nvrtc"], tuple(kept["archs"]), tuple(kept["by"]), frozenset(kept["free"]), most_keys, *few)


def allowed_bytes(variant: Variant, build: CudaBuild) -> int:
    """What a thread of a variant's build may spill: nothing where the variant has no file."""
    return spills_of(variant.folder).allowed_bytes(build) if (variant.folder / NAME).is_file() else 0


def text(spills: Spills) -> str:
    """The text of the file."""
    most_keys = {
        " ".join(map(str, shape)): {
            " ".join(sorted(company)): of_shape[company] for company in sorted(of_shape, key=sorted)
        }
        for shape, of_shape in sorted(spills.most_keys.items())
    }
    kept = {"nvrtc": spills.nvrtc, "archs": spills.archs, "by": spills.by, "free": sorted(spills.free)}
    few = {"few_keys": spills.few_keys, "few_bytes": spills.few_bytes} if spills.few_bytes else {}
    return json.dumps(kept | few | {"most_keys": most_keys}, indent=1) + "\n"
