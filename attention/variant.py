"""What a kernel variant is: frozen data plus short formulas, in a folder that is found because it is there.

`kernels/<arch>/<pass>/<name>/variant.py` binds `VARIANT`. It states which problems it serves, its configuration space,
what is legal, and what one tile asks of the machine. The model turns demands into time, and the chooser picks; a
variant does neither.
"""

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from attention.errors import AttentionError
from attention.problem import AttentionProblem
from microbench.arch import Arch

KERNELS = Path(__file__).parent / "kernels"
MEMORY = "memory"  # a demand's rate: the bandwidth of the nearest memory level that holds `resident_bytes`

Owner = Literal["smscope", "torch"]


@dataclass(frozen=True)
class Config:
    """One point of a variant's configuration space, in the order its axes are declared."""

    values: tuple[tuple[str, int], ...] = ()

    def __getitem__(self, axis: str) -> int:
        return self._by_axis[axis]

    def get(self, axis: str, default: int) -> int:
        """The value of an axis, which this configuration may leave out."""
        return self._by_axis.get(axis, default)

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


@dataclass(frozen=True)
class Demand:
    """`amount` of something that the constant `rate` of a profile counts per second (or per SM and clock).

    Demands of one `phase` overlap, so that the largest of them counts; the phases of a kernel follow one another.
    """

    term: str
    phase: str
    amount: float
    rate: str
    resident_bytes: float = 0.0


@dataclass(frozen=True)
class Tile:
    """What one full tile of rows x columns scores asks for, and how finely work on masked scores is left out.

    `edge` is asked once for every tile row: reading Q, writing out and lse.
    `heads` of a group share a tile's rows, and with them one reading of K and V.
    `split_keys`: tiles of one row go to several units where rows alone would leave units idle.
    """

    rows: int
    columns: int
    row_step: int
    column_step: int
    demands: tuple[Demand, ...]
    edge: tuple[Demand, ...] = ()
    heads: int = 1
    split_keys: bool = False


@dataclass(frozen=True)
class CudaBuild:
    """What NVRTC is asked for, and what a launch of it takes: kernel.cu of the variant's folder with these defines."""

    kernel: str
    defines: tuple[tuple[str, int | str], ...]
    threads: int
    smem_bytes: int


@dataclass(frozen=True)
class Variant:
    """One kernel: `name` and `path` are filled in from where its file lies.

    archs       the architectures it runs on
    refuses     why it cannot serve a problem, in a sentence without a full stop, or None
    features    what it serves beyond full and top-left causal attention; a problem that asks for more is refused
    space       axes of the configuration space
    illegal     why one configuration cannot run (registers, shared memory, threads), or None
    tile        the demands of one tile; None where nothing is known of the inside of the kernel
    entry       'module:function' in the same folder: f(query, key, value, problem, config, extras) -> (out, lse)
                query (B, Hq, Sq, D) in any strides; packed sequences are (1, Hq, Tq, D), and lse (1, Hq, Tq)
    build       the cubin behind a configuration, for a variant that is a CUDA kernel of ours
    signature   opcodes that each such cubin holds: without one of them it is not the kernel that was written
    pads        the head dim that it computes with, for a problem's
    rank        order among candidates that no profile can predict
    first_seconds   what the first call of each shape costs the host beside the work: a plan that a library builds
    fused       it keeps scores on the chip; False is the slow path, which is never preferred to a kernel
    notes       what the caller should know of how a problem is served (conversions, copies, the backward)
    compiles    whether a first call may wait seconds for a compiler; the module of `entry` then has is_ready(), whether
                it would not, and prepare(), which compiles for later calls and processes
    """

    summary: str
    owner: Owner
    archs: tuple[str, ...]
    refuses: Callable[[AttentionProblem, Arch], str | None]
    tile: Callable[[AttentionProblem, Config], Tile] | None = None
    space: tuple[tuple[str, tuple[int, ...]], ...] = ()
    illegal: Callable[[AttentionProblem, Config, Arch], str | None] | None = None
    features: frozenset[str] = frozenset()
    entry: str = "kernel:forward"
    build: Callable[[AttentionProblem, Config], CudaBuild] | None = None
    signature: tuple[str, ...] = ()
    pads: Callable[[int], int] = lambda head_dim: head_dim
    rank: int = 0
    first_seconds: float = 0.0
    fused: bool = True
    notes: Callable[[AttentionProblem], tuple[str, ...]] = lambda _: ()
    compiles: bool = False
    name: str = ""
    path: str = ""
    package: str = field(default="", compare=False, repr=False)

    def refusal(self, problem: AttentionProblem, arch: Arch) -> str | None:
        """Why it cannot serve a problem: a feature it has not, else what `refuses` says."""
        lacks = [feature for feature in problem.features if feature not in self.features]
        return f"has no {', no '.join(lacks)}" if lacks else self.refuses(problem, arch)

    @property
    def folder(self) -> Path:
        """Where its files lie."""
        return KERNELS / self.path

    def configs(self) -> tuple[Config, ...]:
        """Every point of the space, legal or not."""
        return _points(self.space)

    def load(self) -> Callable[..., tuple[Any, Any]]:
        """The function behind `entry`; its libraries are imported here and not before."""
        loaded: Callable[..., tuple[Any, Any]] = getattr(self._module, self.entry.partition(":")[2])
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
        return importlib.import_module(f"{self.package}.{self.entry.partition(':')[0]}")


@cache
def _points(space: tuple[tuple[str, tuple[int, ...]], ...]) -> tuple[Config, ...]:
    names = [name for name, _ in space]
    return tuple(
        Config(tuple(zip(names, combination, strict=True))) for combination in product(*(values for _, values in space))
    )


def discover(root: Path = KERNELS, which: str = "forward") -> tuple[Variant, ...]:
    """Every variant of one pass under `root`, in the order of its folders."""
    return tuple(_read(root, file) for file in sorted(root.glob(f"*/{which}/*/variant.py")))


@cache
def shipped(which: str = "forward") -> tuple[Variant, ...]:
    """The variants of this package."""
    return discover(KERNELS, which)


def by_path(path: str) -> Variant:
    """The shipped variant that a Choice names. Raises AttentionError."""
    for variant in shipped():
        if variant.path == path:
            return variant
    raise AttentionError(f"No kernel variant lies at {path!r}; this choice was made by another version of attention.")


def _read(root: Path, file: Path) -> Variant:
    path = file.parent.relative_to(root).as_posix()
    module = _module(root, file)
    variant = getattr(module, "VARIANT", None)
    if not isinstance(variant, Variant):
        raise AttentionError(f"kernels/{path}/variant.py binds no VARIANT; see CONTRIBUTING, 'a new variant'.")
    return replace(variant, name=file.parent.name, path=path, package=module.__name__.rpartition(".")[0])


def _module(root: Path, file: Path) -> ModuleType:
    if root == KERNELS:
        return importlib.import_module(
            ".".join(("attention", "kernels", *file.relative_to(root).with_suffix("").parts))
        )
    spec = importlib.util.spec_from_file_location(f"attention_variant_{file.parent.name}.variant", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
