"""The golden table of static latencies: what ptxas leaves between two dependent instructions, per architecture.

It costs no GPU, and says what a measured latency must not undercut. Where ptxas counts stalls alone, the latency is a
number; where it raises a scoreboard, the hardware decides and only a measurement tells.
"""

from dataclasses import dataclass

from microbench.compile import Cubin, Source, compile_all
from microbench.errors import ContractError, SmscopeError
from microbench.machine.arch import CUDA, by_name, with_feature
from microbench.paths import PACKAGE
from microbench.probe import SassContract
from microbench.sass import timed_region
from microbench.sass.latency import static_latencies
from microbench.verify.tables import LatencyRow

LENGTH = 8
SOURCE = PACKAGE / "verify" / "static_latency.cu"


@dataclass(frozen=True)
class Chain:
    """One row of the table: its functor in static_latency.cu, and the heads that it may become in SASS."""

    instruction: str
    functor: str
    heads: tuple[str, ...]
    archs: tuple[str, ...] = CUDA


def _mma(name: str, functor: str, head: str, feature: str) -> Chain:
    return Chain(name, functor, (head,), with_feature(feature))


CHAINS = (
    Chain("FADD", "Fadd", ("FADD",)),
    Chain("FMUL", "Fmul", ("FMUL",)),
    Chain("FFMA", "Ffma", ("FFMA",)),
    Chain("FMNMX", "Fmnmx", ("FMNMX", "FMNMX3")),
    Chain("IMAD", "Imad", ("IMAD",)),
    Chain("LOP3", "Lop3", ("LOP3",)),
    Chain("SHF", "Shf", ("SHF",)),
    Chain("PRMT", "Prmt", ("PRMT",)),
    Chain("HADD2", "Hadd2", ("HADD2", "HFMA2")),
    Chain("HFMA2", "Hfma2", ("HFMA2",)),
    Chain("DADD", "Dadd", ("DADD",)),
    Chain("DFMA", "Dfma", ("DFMA",)),
    Chain("MUFU.EX2", "Ex2", ("MUFU",)),
    Chain("SHFL", "Shfl", ("SHFL",)),
    _mma("m8n8k4 f16", "MmaM8n8k4", "HMMA", "mma_m8n8k4"),
    _mma("m16n8k8 f16", "MmaM16n8k8", "HMMA", "mma_m16n8k8"),
    _mma("m16n8k16 f16", "MmaM16n8k16", "HMMA", "mma_m16n8k16"),
    _mma("m16n8k16 bf16", "MmaM16n8k16Bf16", "HMMA", "mma_m16n8k16"),
    _mma("m16n8k8 tf32", "MmaM16n8k8Tf32", "HMMA", "mma_m16n8k16"),
    _mma("m16n8k32 s8", "MmaM16n8k32S8", "IMMA", "mma_m16n8k16"),
    # Hopper and sm_100a unpack fp8 into two HMMA; only these have an instruction of their own.
    Chain("m16n8k32 e4m3", "MmaM16n8k32E4m3", ("QMMA",), ("sm89", "sm120a")),
    _mma("m8n8k4 f64", "MmaM8n8k4F64", "DMMA", "mma_m16n8k16"),
)


def golden() -> tuple[LatencyRow, ...]:
    """Every chain on every architecture that has it, compiled now. Raises BuildError, ContractError, and the rest."""
    text = SOURCE.read_text()
    wanted = [(chain, arch) for chain in CHAINS for arch in chain.archs]
    made = compile_all([_source(text, chain, arch) for chain, arch in wanted])
    return tuple(_row(chain, cubin) for (chain, _), cubin in zip(wanted, made, strict=True))


def _source(text: str, chain: Chain, arch: str) -> Source:
    defines = (("KIND", chain.functor), ("LENGTH", LENGTH))
    return Source(text, SOURCE.name, by_name(arch), SOURCE.stem, defines)


def _row(chain: Chain, cubin: Cubin | SmscopeError) -> LatencyRow:
    if isinstance(cubin, SmscopeError):
        raise cubin
    region = timed_region(SassContract(()), cubin.instructions())
    steps = [instruction for instruction in region if instruction.head in chain.heads]
    strangers = sorted({i.opcode for i in region if i.head not in (*chain.heads, "NOP")})
    if strangers or len(steps) < LENGTH // 2:  # Blackwell fuses two maxima into one FMNMX3
        raise ContractError(
            f"{chain.instruction} on {cubin.arch}: {len(steps)} of {LENGTH} stand in its chain, "
            f"beside {' '.join(strangers) or 'nothing'}; change static_latency.cu or what latencies.py expects."
        )
    waits = static_latencies(region)
    by_scoreboard = {wait.scoreboard for wait in waits}
    return LatencyRow(
        instruction=chain.instruction,
        arch=cubin.arch,
        opcode=" ".join(sorted({step.opcode for step in steps})),
        cycles=" ".join(map(str, sorted({wait.cycles for wait in waits}))),
        scoreboard="in part" if len(by_scoreboard) > 1 else "yes" if True in by_scoreboard else "no",
        nvrtc=cubin.nvrtc,
    )
