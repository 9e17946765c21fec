"""What is known of a GPU that nobody measured here: its architecture, the vendor's numbers, what others published."""

from dataclasses import dataclass
from difflib import get_close_matches

from microbench.errors import UnknownGpu
from microbench.machine.arch import ARCHS, Arch
from microbench.machine.tensor import tensor_flops_per_clk
from microbench.published import Published, load
from microbench.published.facts import Gpu
from microbench.published.machines import machine_of
from microbench.published.names import leaves_out, listed, matching, words
from microbench.published.reported import Reported, reported
from microbench.published.verdict import Place

COLUMNS = ("sm_count", "boost_clock_mhz", "mem_bw_gbs", "l2_mib", "tc_bf16_tflops", "tdp_w")


@dataclass(frozen=True)
class Board:
    """A board with its vendor's numbers, None where there is no single one. Those in `recalled` are from memory."""

    name: str
    slug: str
    chip: str
    mem_size_gb: str = ""
    sm_count: float | None = None
    boost_clock_mhz: float | None = None
    mem_bw_gbs: float | None = None  # of DRAM, 10^9 bytes a second
    l2_mib: float | None = None
    tc_bf16_tflops: float | None = None  # dense
    tdp_w: float | None = None
    tensor_flops_per_clk: float | None = None  # of an SM: f16 or bf16 operands, f32 accumulators, dense
    recalled: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True)
class Known:
    """The boards that a name may mean, all of one architecture, and what others published of our constants on them."""

    asked: str
    arch: str
    generation: str
    compute_capability: str
    boards: tuple[Board, ...]
    reported: tuple[Reported, ...]

    @property
    def sm_count(self) -> int | None:
        """The number of SMs, where a document gives one and the boards agree."""
        counts = {None if "sm_count" in board.recalled else board.sm_count for board in self.boards} - {None}
        (count,) = counts if len(counts) == 1 else (None,)
        return None if count is None else int(count)


def known(asked: str, published: Published | None = None) -> Known:
    """What is known of the GPU or the architecture called `asked`. Raises UnknownGpu with the nearest names."""
    tables = published or load()
    named = [gpu for gpu in tables.gpus if gpu.slug]
    slugs = matching(asked, ((gpu.slug, gpu.name, *_with_memory(gpu, tables)) for gpu in named))
    beside = slugs if all(leaves_out(asked, slug) for slug in slugs) else ()
    gpus = tuple(gpu for gpu in named if gpu.slug in slugs and not beside)
    if len({gpu.compute_capability for gpu in gpus}) > 1:
        raise UnknownGpu(f"{asked!r} may be {listed(slugs)}; name one of them.")
    arch = gpus[0].arch if gpus else _by_architecture(asked, beside, [gpu.slug for gpu in named])
    boards = tuple(_board(gpu, tables) for gpu in gpus)
    places = [Place(gpu.slug, gpu.chip, arch, gpu.line == "GeForce") for gpu in gpus]
    rows = reported(places, tables)
    return Known(asked, arch.name, arch.generation, arch.capability, boards, rows)


def _by_architecture(asked: str, beside: tuple[str, ...], slugs: list[str]) -> Arch:
    """The row of arch.py that is called so: 'sm80', 'sm_90', '8.9', 'ada'. Raises UnknownGpu."""
    rows = [arch for arch in ARCHS if "cuda" in arch.features]
    plain = asked.lower().strip().replace("_", "")
    found = [arch for arch in rows if plain in _names_of(arch)]
    if len(found) == 1:
        return found[0]
    if found:
        raise UnknownGpu(f"{asked!r} may be {listed(arch.name for arch in found)}; name one of them.")
    near = beside or get_close_matches("-".join(words(asked)), slugs, cutoff=0.5)
    hint = (
        f"near it {'is' if len(near) == 1 else 'are'} {listed(near)}"
        if near
        else "data/published/gpus.csv lists those that it knows"
    )
    raise UnknownGpu(f"No GPU called {asked!r} is known; {hint}. An architecture's name, such as sm89, will do too.")


def _names_of(arch: Arch) -> tuple[str, ...]:
    return arch.name, arch.name.rstrip("a"), arch.capability, arch.generation.lower()


def _with_memory(gpu: Gpu, tables: Published) -> tuple[str, ...]:
    """The slug with the memory that the specification gives: our own name of an H200 is h200-sxm-141gb."""
    spec = tables.spec(gpu.name)
    size = f"{spec.mem_size_gb}gb" if spec and spec.mem_size_gb.isdecimal() else ""
    return (f"{gpu.slug} {size}",) if size and size not in gpu.slug else ()


def _board(gpu: Gpu, tables: Published) -> Board:
    spec, machine = tables.spec(gpu.name), machine_of(gpu.name, tables)
    rate = tensor_flops_per_clk(machine) if machine else None
    if spec is None:
        return Board(gpu.name, gpu.slug, gpu.chip, tensor_flops_per_clk=rate)
    numbers = {column: spec.number(column) for column in COLUMNS}
    recalled = tuple(column for column in spec.recalled if column in (*COLUMNS, "mem_size_gb"))
    numbers["tensor_flops_per_clk"] = rate
    return Board(gpu.name, gpu.slug, gpu.chip, spec.mem_size_gb, **numbers, recalled=recalled, source=spec.source)
