"""The published profile of a kind of GPU: constants that others measured or documented, each with its sources.

It is derived, as a measured profile is: `make profile` writes data/published/profiles again, byte for byte, from the
tables beside it (evidence.py says which figure wins). A constant that no source gives is absent. No pick rests on one
of these constants; they say what could be expected of a GPU that nobody measured here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from microbench import files, paths
from microbench.errors import DataError
from microbench.probe import Probe
from microbench.published import Published, load
from microbench.published.evidence import Evidence, KindOfGpu, Method, Nearness, Won, figures, usable, won
from microbench.published.facts import Kind, Spec
from microbench.published.kinds import PROFILES, SM_CLOCK
from microbench.published.reported import UNITS
from microbench.results.order import in_order
from microbench.results.profile import Profile
from microbench.results.profile_constant import PUBLISHED, ProfileConstant

# What a chip does a second, by what each SM does a clock.
PER_CLOCK = {
    "mma_bf16_burst_flops_per_s": "mma_bf16_flops_per_clk_sm",
    "mma_f16_burst_flops_per_s": "mma_f16_flops_per_clk_sm",
    "tcgen05_bf16_burst_flops_per_s": "tcgen05_bf16_flops_per_clk_sm",
    "l2_bandwidth_bytes_per_s": "l2_bandwidth_bytes_per_clk_sm",
}
# Column of specs.csv, and its factor to our unit.
SHEET = {
    SM_CLOCK: ("boost_clock_mhz", 1.0),
    "dram_bandwidth_bytes_per_s": ("mem_bw_gbs", 1e9),
    "l2_size_bytes": ("l2_mib", 2.0**20),
}
# The data sheet rates the products of the generation's own instruction.
RATED_PRODUCTS = {
    "tcgen05": {"tcgen05_bf16_burst_flops_per_s": ("tc_bf16_tflops", 1e12)},
    "wgmma": {"wgmma_bf16_burst_flops_per_s": ("tc_bf16_tflops", 1e12)},
    "": {
        "mma_bf16_burst_flops_per_s": ("tc_bf16_tflops", 1e12),
        "mma_f16_burst_flops_per_s": ("tc_fp16_fp32acc_tflops", 1e12),
    },
}


@dataclass(frozen=True)
class Derived:
    """A published profile, and a sentence for each figure that physics refuses, and each pair that cannot be."""

    profile: Profile
    refused: tuple[str, ...]


def derive(kind: Kind, published: Published, probes: Sequence[Probe]) -> Derived:
    """The published profile of a kind. Raises DataError where no document gives the number of its SMs."""
    gpu = KindOfGpu.of(kind, published, probes)
    spec = published.spec(gpu.board.name)
    sm_count = spec.read("sm_count") if spec else None
    if spec is None or sm_count is None:
        raise DataError(f"specs.csv has no number of SMs of {gpu.board.name} from a document; {kind.kind} needs one.")
    facts, refused = usable(gpu)
    sheet = SHEET | next(columns for feature, columns in RATED_PRODUCTS.items() if feature in (*gpu.arch.features, ""))
    clock_mhz = spec.read("boost_clock_mhz")
    names = dict.fromkeys((*(rule.constant for rule in published.quantities), *PER_CLOCK, *sheet))
    constants, upper_bounds = list[ProfileConstant](), list[ProfileConstant]()
    for name in names:
        every = list(figures(name, gpu, facts))
        if name in PER_CLOCK and clock_mhz is not None:
            scale = sm_count * clock_mhz * 1e6
            per_clock = figures(PER_CLOCK[name], gpu, facts)
            every += [replace(each, value=each.value * scale, at_clock=True) for each in per_clock]
        every += _of_sheet(name, sheet, spec, gpu)
        found = won(every, name)
        if found is not None:
            (upper_bounds if found.best.method == Method.LONGER else constants).append(_constant(name, found, gpu))
    constants, contradictions = in_order(constants)
    profile = Profile(
        gpu=kind.kind,
        name=gpu.board.name,
        arch=gpu.arch.name,
        sm_count=int(sm_count),
        constants=tuple(sorted((*constants, *upper_bounds), key=lambda each: each.name)),
    )
    return Derived(profile, (*refused, *contradictions))


def text(profile: Profile) -> str:
    """A published profile as its file holds it."""
    return profile.model_dump_json(indent=2, exclude_none=True) + "\n"


def write(probes: Sequence[Probe]) -> tuple[Derived, ...]:
    """Derive every kind's beside the tables; none where profiles are not written beside them. Raises DataError."""
    folder = paths.writable_data() / "published"
    if not folder.is_dir():
        return ()
    published = load()
    every = tuple(derive(kind, published, probes) for kind in published.kinds)
    for each in every:
        place = folder / PROFILES / f"{each.profile.gpu}.json"
        try:
            files.put(place, text(each.profile))
        except OSError as error:
            raise DataError(f"Could not write {place.name}: {error.strerror}{paths.moved(place)}.") from error
    return every


def _of_sheet(name: str, sheet: dict[str, tuple[str, float]], spec: Spec, gpu: KindOfGpu) -> list[Evidence]:
    if name not in sheet:
        return []
    column, factor = sheet[name]
    number = spec.read(column)
    if number is None:
        return []
    near, method = Nearness.DATA_SHEET, Method.OURS
    return [Evidence(number * factor, column, near, method, gpu.board.name, column, gpu.kind.sources)]


def _constant(name: str, found: Won, gpu: KindOfGpu) -> ProfileConstant:
    return ProfileConstant(
        name=name,
        value=_figure(found.best.value),
        low=_figure(found.low),
        high=_figure(found.high),
        unit=_unit(name),
        n=found.rows,
        runs=(),
        probe=found.best.quantity,
        method="published",
        label=PUBLISHED,
        sources=found.sources,
        basis=_basis(found.best, gpu),
    )


def _figure(value: float) -> float:
    return float(f"{value:.6g}")


def _unit(name: str) -> str:
    return "MHz" if name == SM_CLOCK else next(unit for ending, unit in UNITS.items() if name.endswith(ending))


def _basis(best: Evidence, gpu: KindOfGpu) -> str:
    """Whose figure it is, and how it became this constant."""
    of = {
        Nearness.OWN: best.of,
        Nearness.OTHER_BOARD: f"{best.of}, another board of the kind",
        Nearness.ARCHITECTURE: f"{best.of}, another board of {gpu.arch.name}",
        Nearness.DOCUMENT: f"documented for {best.of}",
        Nearness.DATA_SHEET: f"data sheet of {best.of}",
    }
    said = [of[best.nearness]]
    if best.nearness == Nearness.DATA_SHEET and best.quantity.startswith("mem_bw"):
        said.append("a ceiling that no kernel reaches")
    if best.nearness == Nearness.DATA_SHEET and best.quantity.startswith("tc_"):
        said.append("at its boost clock")
    if best.at_clock:
        said.append("a rate per clock, times SMs and boost clock of the data sheet")
    if best.method == Method.OTHER and best.nearness < Nearness.DOCUMENT:
        said.append("by another method than ours")
    if best.method == Method.LONGER:
        said.append("an address step included, so at most this")
    return "; ".join(said)
