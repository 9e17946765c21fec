"""What a kernel variant is: frozen data plus short formulas, found because its file is there.

A kernel of ours is a folder: `kernels/<arch>/<pass>/<name>/variant.py` binds `VARIANT`. A kernel of torch's is a file:
`kernels/torch/<kernel>.py` binds `VARIANTS`, each with its path. A variant states which problems it serves, its
configuration space, what is legal, and what one tile asks of the machine. The model turns demands into time, and the
chooser picks; a variant does neither.
"""

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from attention.errors import AttentionError
from attention.forwarded import Wanted
from attention.problem import AttentionProblem
from attention.tile import Tile, WarpgroupTile, WarpTile
from microbench.machine.arch import Arch

KERNELS = Path(__file__).parent / "kernels"
TORCHS = "torch"  # the room of torch's kernels
FEW_QUERIES = 128  # as many rows as the smallest tile of a prefill kernel has
PARTS = "parts"  # the phase of what blocks leave that share a row's keys
MEMORY = "memory"  # a demand's rate: the bandwidth of the nearest memory level that holds `resident_bytes`

Owner = Literal["smscope", "torch"]


@dataclass(frozen=True)
class Config:
    """One point of a variant's configuration space, in the order its axes are declared."""

    values: tuple[tuple[str, int], ...] = ()

    def __getitem__(self, axis: str) -> int:
        return self._by_axis[axis]

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The values alone."""
        return tuple(value for _, value in self.values)

    @cached_property
    def _by_axis(self) -> dict[str, int]:
        return dict(self.values)

    @cached_property
    def _hash(self) -> int:
        return hash(self.values)

    def __hash__(self) -> int:
        """Computed once: timings are looked up by it."""
        return self._hash

    def __getstate__(self) -> dict[str, Any]:
        """Without what is kept beside the values: another process would compute another hash."""
        return {"values": self.values}

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.values) or "-"


@dataclass(frozen=True, eq=False)
class Settled:
    """A choice that is no axis of a space, since one rule won; a configuration may name another value.

    Where it became an axis later, the rule tells what configurations were built with that are older.

    `rule` is told the problem, and the values of the configuration and of all that is settled before. `concerns` says
    for which problems there is a choice to explain.
    """

    name: str
    rule: Callable[[AttentionProblem, Mapping[str, int]], int]
    why: str
    concerns: Callable[[AttentionProblem], bool] = lambda _: True


@lru_cache(maxsize=4096)
def settle(choices: tuple[Settled, ...], problem: AttentionProblem, config: Config) -> Config:
    """A configuration with everything that is settled."""
    values = dict(config.values)
    for each in choices:
        if each.name not in values:
            values[each.name] = each.rule(problem, values)
    return Config(tuple(values.items()))


@dataclass(frozen=True)
class CudaBuild:
    """What NVRTC is asked for, and what a launch of it takes: the .cu of the variant's folder with these defines.

    `cluster` blocks that follow one another run at the same time, as a thread-block cluster.
    """

    kernel: str
    defines: tuple[tuple[str, int | str], ...]
    threads: int
    smem_bytes: int
    cluster: int = 1


@dataclass(frozen=True, eq=False)
class Lasting:
    """A rule about what `stands_for` a problem, and for all problems that it decides alike on.

    `rest` is what `illegal` asks beside it, of a launch's problem: nothing where it is None.
    """

    stands_for: Callable[[AttentionProblem], AttentionProblem]
    rule: Callable[[AttentionProblem, Config, Arch], str | None]
    rest: Callable[[AttentionProblem, Config, Arch], str | None] | None = None


@dataclass(frozen=True)
class Variant:
    """One kernel. Where its file lies fills in `module`, and `path` for a kernel of ours.

    archs       the architectures it runs on
    refuses     why it cannot serve a problem, in a sentence without a full stop, or None
    features    what it serves beyond full and top-left causal attention; a problem that asks for more is refused
    space       axes of the configuration space, which the chooser tries
    settled     choices beside them, by a rule each
    withheld    why a call cannot have a backward, by what it wants or torch's switches, or None
    illegal     why one configuration cannot run (registers, shared memory, threads), or None
    lasting     the first part of `illegal`, where it is a rule about all problems of a kind: asked once of each kind
    outdone     why a choice leaves it out where another kernel of ours serves too, as timings showed, or None; a call
                that names it is served by it
    tile        the demands of one tile; None where nothing is known of the inside of the kernel
    residents   the same tile as the warps or warpgroups that share an SM, which predict it then, unless None
    builds      the cubins behind a configuration, one for each step, for a variant that is a CUDA kernel of ours
    launch_of   the problem that one launch serves: another one where a call takes two such, one after the other
    workspace   bytes of device memory that its steps or blocks share, beside the tensors of the call
    signature   opcodes that each such cubin holds: without one of them it is not the kernel that was written
    pads        the head dim that it computes with, for a problem's
    rank        order among candidates that no profile can predict
    first_seconds   what the first call of each shape costs the host beside the work: a plan that a library builds
    unproven    no GPU of its architectures has run it: only a call that asks for our kernels is served by it
    fused       it keeps scores on the chip; False is the slow path, which is never preferred to a kernel
    notes       what the caller should know of how a problem is served (conversions, copies, the backward)
    compiles    whether a first call may wait seconds for a compiler; `module` then has is_ready(), whether it would
                not, and prepare(), which compiles for later calls and processes
    path        <arch>/<pass>/<name>, which names it in timings
    module      what holds the function, called as the pass is:
                forward(query, key, value, problem, config, extras) -> (out, lse)
                backward(grad_out, grad_lse, forwarded, wanted) -> Gradients
                query (B, Hq, Sq, D) in any strides; packed sequences are (1, Hq, Tq, D), and lse (1, Hq, Tq)
    """

    summary: str
    owner: Owner
    archs: tuple[str, ...]
    refuses: Callable[[AttentionProblem, Arch], str | None]
    tile: Callable[[AttentionProblem, Config], Tile] | None = None
    residents: Callable[[AttentionProblem, Config], WarpgroupTile | WarpTile | None] | None = None
    space: tuple[tuple[str, tuple[int, ...]], ...] = ()
    settled: tuple[Settled, ...] = ()
    illegal: Callable[[AttentionProblem, Config, Arch], str | None] | None = None
    lasting: Lasting | None = None
    outdone: Callable[[AttentionProblem, Arch], str | None] = lambda problem, arch: None
    features: frozenset[str] = frozenset()
    withheld: Callable[[Wanted], str | None] = lambda _: None
    builds: Callable[[AttentionProblem, Config], tuple[CudaBuild, ...]] | None = None
    launch_of: Callable[[AttentionProblem], AttentionProblem] = lambda problem: problem
    workspace: Callable[[AttentionProblem, Config], int] = lambda problem, config: 0
    signature: tuple[str, ...] = ()
    pads: Callable[[int], int] = lambda head_dim: head_dim
    rank: int = 0
    first_seconds: float = 0.0
    unproven: bool = False
    fused: bool = True
    notes: Callable[[AttentionProblem], tuple[str, ...]] = lambda _: ()
    compiles: bool = False
    path: str = ""
    module: str = field(default="", compare=False, repr=False)

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def passes(self) -> str:
        """Which pass it computes: forward, backward or decode."""
        return pass_of(self.path)

    def refusal(self, problem: AttentionProblem, arch: Arch) -> str | None:
        """Why it cannot serve a problem: a feature it has not, else what `refuses` says."""
        lacks = [feature for feature in problem.features if feature not in self.features]
        return f"has no {', no '.join(lacks)}" if lacks else self.refuses(problem, arch)

    def steps(self, problem: AttentionProblem, config: Config) -> tuple[CudaBuild, ...]:
        """What NVRTC compiles for a configuration: nothing where it is no CUDA kernel of ours."""
        return self.builds(problem, config) if self.builds else ()

    @property
    def folder(self) -> Path:
        """The folder that holds its files."""
        return KERNELS / self.path

    def configs(self) -> tuple[Config, ...]:
        """Every point of the space, legal or not."""
        return _points(self.space)

    def load(self) -> Callable[..., Any]:
        """The function that runs it; its libraries are imported here and not before."""
        loaded: Callable[..., Any] = getattr(self._module, self.passes)
        return loaded

    def is_ready(self) -> bool:
        """Whether a call need not wait for a compiler."""
        return not self.compiles or bool(self._module.is_ready())

    def prepare(self) -> None:
        """Compile what later calls would wait for."""
        if self.compiles:
            self._module.prepare()

    @property
    def _module(self) -> Any:
        return importlib.import_module(self.module)


@cache
def _points(space: tuple[tuple[str, tuple[int, ...]], ...]) -> tuple[Config, ...]:
    names = [name for name, _ in space]
    return tuple(
        Config(tuple(zip(names, combination, strict=True))) for combination in product(*(values for _, values in space))
    )


def pass_of(path: str) -> str:
    """The pass in a variant's path."""
    return path.split("/")[1]


def discover(root: Path = KERNELS) -> tuple[Variant, ...]:
    """Every variant of every pass under `root`, in the order of their paths."""
    ours = [_in_folder(root, file) for file in root.glob("*/*/*/variant.py")]
    torchs = [each for file in root.glob(f"{TORCHS}/[!_]*.py") for each in _in_file(root, file)]
    return tuple(sorted((*ours, *torchs), key=lambda variant: variant.path.split("/")))


@cache
def shipped(passes: str = "forward") -> tuple[Variant, ...]:
    """The variants of this package that compute one pass."""
    return tuple(variant for variant in every_shipped() if variant.passes == passes)


@cache
def every_shipped() -> tuple[Variant, ...]:
    """The variants of this package, of all passes."""
    return discover()


def by_path(path: str) -> Variant:
    """The shipped variant that a Choice names. Raises AttentionError."""
    for variant in every_shipped():
        if variant.path == path:
            return variant
    raise AttentionError(f"No kernel variant lies at {path!r}; this choice was made by another version of attention.")


def _in_folder(root: Path, file: Path) -> Variant:
    path = file.parent.relative_to(root).as_posix()
    module = _module(root, file)
    variant = getattr(module, "VARIANT", None)
    if not isinstance(variant, Variant):
        raise AttentionError(f"kernels/{path}/variant.py binds no VARIANT; see CONTRIBUTING, 'a new variant'.")
    return replace(variant, path=path, module=f"{module.__name__.rpartition('.')[0]}.launch")


def _in_file(root: Path, file: Path) -> tuple[Variant, ...]:
    module = _module(root, file)
    variants = getattr(module, "VARIANTS", ())
    if not variants or not all(isinstance(each, Variant) and each.path.count("/") == 2 for each in variants):
        raise AttentionError(f"kernels/{TORCHS}/{file.name} binds no VARIANTS, each with the path that names it.")
    return tuple(replace(variant, module=module.__name__) for variant in variants)


def _module(root: Path, file: Path) -> ModuleType:
    if root == KERNELS:
        return importlib.import_module(
            ".".join(("attention", "kernels", *file.relative_to(root).with_suffix("").parts))
        )
    # A folder of somebody's own: under names by which load() finds it again.
    name = "_".join(("attention_variant", *file.relative_to(root).with_suffix("").parts))
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
