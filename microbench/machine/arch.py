"""The table of architectures, and the description of one concrete machine.

Rates are per SM and clock. Sources: CUDA Programming Guide 13.x, compute-capability tables (cc_limits.csv and
cc_op_throughput.csv in data/published), the architecture whitepapers (specs.csv there).
"""

from dataclasses import dataclass

from microbench.errors import UnknownArch


@dataclass(frozen=True)
class Limits:
    """What one SM of an architecture can do at most; None where no document says it."""

    fp32_lanes: int  # FFMA results per clock
    int32_lanes: int  # integer additions, minima and DPX results per clock
    mufu_lanes: int  # MUFU results per clock
    # From one dependent FFMA, FADD or IMAD to the next. ptxas stalls as long (data/verification/static_latency.csv),
    # and an H100 computes wrongly at one less.
    alu_latency_cycles: int
    tensor_f16_flops_per_clk: int  # dense, 2 per multiply-add; GeForce boards halve it: see tensor.py
    smem_bytes_per_clk: int
    l1_bytes_per_clk: int
    l2_bytes_per_clk: int  # the port between one SM and the crossbar
    registers: int
    smem_bytes: int  # per SM
    smem_bytes_per_block: int  # after opt-in
    max_warps: int
    max_blocks: int


@dataclass(frozen=True)
class Arch:
    """One row: the name used everywhere in code, the prose name, and what it has."""

    name: str
    generation: str
    compute_capability: tuple[int, int]
    features: frozenset[str]
    limits: Limits | None = None

    def __hash__(self) -> int:
        """By its name alone: a choice of a kernel looks a hundred rules up by it."""
        return hash(self.name)

    @property
    def capability(self) -> str:
        """'9.0', as documents write it."""
        return "{}.{}".format(*self.compute_capability)

    @property
    def nvrtc(self) -> str:
        """The `-arch` value: sm90a becomes sm_90a."""
        return self.name.replace("sm", "sm_")


@dataclass(frozen=True)
class Machine:
    """One concrete GPU or CPU: what a bound may use. Anything nobody can know is None."""

    gpu: str  # slug: h100-sxm-80gb
    name: str  # as the vendor prints it
    arch: Arch
    sm_count: int  # SMs of a GPU, logical cores of a CPU
    clock_hz: float | None  # the highest SM clock the driver admits
    dram_bytes_per_s: float | None  # bus width x data rate
    dram_bytes: int
    l2_bytes: int | None

    @property
    def geforce(self) -> bool:
        """True for a board of NVIDIA's consumer line, as the vendor's name says."""
        return "GeForce" in self.name


@dataclass(frozen=True)
class DeviceFacts:
    """What a run's Environment keeps of the device; None where the machine does not say."""

    driver: str | None = None
    vbios: str | None = None
    power_limit_w: float | None = None
    ecc: bool | None = None
    mig: bool | None = None
    sm_clock_mhz: float | None = None
    memory_clock_mhz: float | None = None
    uuid_sha256: str | None = None
    nvrtc: str | None = None
    nvrtc_flags: tuple[str, ...] = ()
    clock_overhead_cycles: float | None = None
    globaltimer_tick_ns: float | None = None


_VOLTA = frozenset({"cuda", "mma_m8n8k4"})
_TURING = frozenset({"cuda", "ldmatrix", "mma_m16n8k8"})
_AMPERE = _TURING | {"cp_async", "mma_m16n8k16", "bf16"}
_ADA = _AMPERE | {"fp8"}
_TMA = frozenset({"mbarrier", "tma", "cluster", "stmatrix", "griddepcontrol"})
_HOPPER = _ADA | _TMA | {"wgmma", "setmaxnreg", "dpx"}
_BLACKWELL = _ADA | _TMA | {"tcgen05", "setmaxnreg", "f32x2"}
_CONSUMER_BLACKWELL = _ADA | _TMA | {"setmaxnreg", "f32x2"}

KIB = 1024


def _limits(
    fp32: int,
    tensor: int,
    smem_kib: int,
    block_kib: int,
    warps: int,
    blocks: int,
    *,
    mufu: int = 16,
    int32: int = 64,
    l1: int = 128,
    l2: int = 64,
) -> Limits:
    return Limits(fp32, int32, mufu, 4, tensor, l1, l1, l2, 65536, smem_kib * KIB, block_kib * KIB, warps, blocks)


ARCHS: tuple[Arch, ...] = (
    Arch("sm70", "Volta", (7, 0), _VOLTA, _limits(64, 1024, 96, 96, 64, 32)),
    # Its L1 and shared memory serve half a warp a clock: a T4's theory in J19 is 4070 GB/s, and 57.6 bytes are read.
    Arch("sm75", "Turing", (7, 5), _TURING, _limits(64, 1024, 64, 64, 32, 16, l1=64)),
    Arch("sm80", "Ampere", (8, 0), _AMPERE, _limits(64, 2048, 164, 163, 64, 32)),
    Arch("sm86", "Ampere", (8, 6), _AMPERE, _limits(128, 1024, 100, 99, 48, 16)),
    Arch("sm89", "Ada", (8, 9), _ADA, _limits(128, 1024, 100, 99, 48, 24)),
    Arch("sm90a", "Hopper", (9, 0), _HOPPER, _limits(128, 4096, 228, 227, 64, 32, l2=128)),
    # No document says how wide the port to the L2 is. B200N reads 21.2 TB/s by 148 SMs at 1.59 GHz: 90 bytes a clock.
    Arch("sm100a", "Blackwell", (10, 0), _BLACKWELL, _limits(128, 8192, 228, 227, 64, 32, l2=128)),
    # data/published/cc_op_throughput.csv: twice the exponentials of sm_100 (FA4; NVIDIA's blog on softmax, 2026-02).
    Arch("sm103a", "Blackwell", (10, 3), _BLACKWELL, _limits(128, 8192, 228, 227, 64, 32, mufu=32, l2=128)),
    Arch("sm120a", "Blackwell", (12, 0), _CONSUMER_BLACKWELL, _limits(128, 1024, 100, 99, 48, 24, int32=128)),
    Arch("host", "CPU", (0, 0), frozenset({"host"})),
)

CUDA: tuple[str, ...] = tuple(a.name for a in ARCHS if "cuda" in a.features)
HOST: tuple[str, ...] = ("host",)


def with_feature(*features: str) -> tuple[str, ...]:
    return tuple(a.name for a in ARCHS if set(features) <= a.features)


def by_name(name: str) -> Arch:
    """The row called `name`. Raises UnknownArch with the list of names."""
    for arch in ARCHS:
        if arch.name == name:
            return arch
    raise UnknownArch(f"No architecture is called {name!r}; choose one of {', '.join(a.name for a in ARCHS)}.")


def by_compute_capability(major: int, minor: int) -> Arch:
    """The row that a GPU of this compute capability runs. Raises UnknownArch where there is none."""
    for arch in ARCHS:
        if arch.compute_capability == (major, minor):
            return arch
    raise UnknownArch(f"Compute capability {major}.{minor} has no row in arch.py; add one (CONTRIBUTING, 'a new GPU').")
