"""A profile as the model reads it: constants by name, never one in doubt, and each as the rate of one SM or core."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from attention.choose.prediction import Term, Unpredicted
from attention.variant import MEMORY
from microbench import paths
from microbench.results.doubt import doubt
from microbench.results.profile import Profile
from microbench.results.profile_constant import ProfileConstant

HOST = "host"
LAUNCH, NEXT = "event_to_event_empty_kernel_ns", "graph_kernel_interval_ns"
# What every model of an SM's residents asks for, whatever multiplies.
EX2, EX2_LATENCY = "mufu_ex2_per_clk_sm", "mufu_ex2_latency_cycles"
FFMA, FFMA_LATENCY = "ffma_per_clk_sm", "ffma_latency_cycles"
SMEM, SMEM_LATENCY = "smem_bandwidth_bytes_per_clk_sm", "smem_latency_cycles"
HANDOVER = "mbarrier_handover_latency_cycles"
BANK_TURN = "smem_conflict_latency_cycles_per_way"  # of a load that asks a bank for several rows
L2, L2_LATENCY = "l2_bandwidth_bytes_per_s", "l2_latency_cycles"
COALESCED = "l2_coalesced_bandwidth_bytes_per_clk_sm"  # of whole lines that warps ask for
DRAM, DRAM_LATENCY = "dram_bandwidth_bytes_per_s", "dram_latency_cycles"
L2_SIZE, WRITE_BACK, WRITTEN_BACK = "l2_size_bytes", "l2_write_back_ratio", "l2_write_back_bytes"
FETCH = "instruction_fetch_cold_cycles_per_line"
FAR_FETCH = "instruction_fetch_cold_past_64kib_cycles_per_line"
NS = 1e-9
LEVELS = ("l1", "l2", "l3")
KEPT_MACHINES = 16
# On the host these bandwidths are one core's own; every other rate per second is that of the whole machine.
ONE_CORE = frozenset({"l1_bandwidth_bytes_per_s", "l2_bandwidth_bytes_per_s"})


@dataclass(frozen=True)
class Rate:
    """What one unit gets done in a second, and the constant, in its own unit, that says so."""

    per_unit_s: float
    constant: str
    value: float


@dataclass(frozen=True, eq=False)  # told apart by identity, as machine_of keeps them
class Machine:
    """A profile, its constants by name, the values of those that are not in doubt, and its SM clock."""

    profile: Profile
    constants: Mapping[str, ProfileConstant]
    values: Mapping[str, float]
    clock_hz: float | None
    rates: dict[tuple[str, bool], Rate] = field(default_factory=dict)  # those that were asked for

    def value(self, name: str) -> float:
        """A constant's value. Raises Unpredicted where the profile has none, or one in doubt."""
        found = self.values.get(name)
        if found is not None:
            return found
        constant = self.constants.get(name)
        if constant is None:
            gpu, bench = self.profile.gpu, paths.typed("bench")
            lacks = f"the profile of {gpu} holds no {name}" if self.constants else f"nothing of {gpu} was measured"
            raise Unpredicted(f"{lacks}; `{bench}` on it measures what it can")
        raise Unpredicted(f"{doubt(constant)}", name)

    @cached_property
    def needed_clock_hz(self) -> float:
        """The clock at which rates per clock were measured; raises Unpredicted without one."""
        if self.clock_hz is None:
            if "sm_clock_mhz" in self.constants:
                self.value("sm_clock_mhz")  # names what is in doubt
            raise Unpredicted(f"the profile of {self.profile.gpu} holds no SM clock")
        return self.clock_hz


_machines: dict[int, Machine] = {}


def machine_of(profile: Profile) -> Machine:
    """Kept by identity: one choice predicts twenty candidates by one profile, and hashing its constants costs more."""
    found = _machines.get(id(profile))
    if found is None or found.profile is not profile:
        if len(_machines) >= KEPT_MACHINES:
            _machines.clear()
        constants = {constant.name: constant for constant in profile.constants if constant.value > 0}
        values = {name: constant.value for name, constant in constants.items() if not constant.doubtful}
        clock_hz = profile.clock_hz
        if "sm_clock_mhz" in constants:
            clock_hz = values["sm_clock_mhz"] * 1e6 if "sm_clock_mhz" in values else None
        found = _machines[id(profile)] = Machine(profile, constants, values, clock_hz)
    return found


def rate_of(machine: Machine, constant: str, resident_bytes: float, alone: bool) -> Rate:
    if constant == MEMORY:
        constant = _nearest_level(machine, resident_bytes)
    if (constant, alone) not in machine.rates:
        machine.rates[constant, alone] = _rate(machine, constant, alone)
    return machine.rates[constant, alone]


def _rate(machine: Machine, constant: str, alone: bool) -> Rate:
    """The rate of one unit, of which `alone` says that no other is busy. Raises Unpredicted."""
    of_one_thread = constant.replace("_per_s", "_one_thread_per_s")
    alone = alone and of_one_thread in machine.constants
    if alone:
        constant = of_one_thread
    value = machine.value(constant)
    if constant.endswith("_per_clk_sm"):
        rate = value * machine.needed_clock_hz
    elif constant.endswith("_cycles"):
        rate = machine.needed_clock_hz / value  # a latency that nothing hides, `amount` times over
    elif alone or (machine.profile.arch == HOST and constant in ONE_CORE):
        rate = value
    else:
        rate = value / machine.profile.sm_count
    return Rate(rate, constant, value)


def _nearest_level(machine: Machine, resident_bytes: float) -> str:
    """The bandwidth of the smallest cache that holds this much; DRAM's where no cache does, or none was measured."""
    for level in LEVELS:
        size, bandwidth = f"{level}_size_bytes", f"{level}_bandwidth_bytes_per_s"
        measured = size in machine.constants and bandwidth in machine.constants
        if measured and resident_bytes <= machine.value(size):
            return bandwidth
    return "dram_bandwidth_bytes_per_s"


@lru_cache(maxsize=KEPT_MACHINES)
def launch_of(machine: Machine, kernels: int = 1) -> tuple[Term, ...]:
    """From one kernel's end to the next one's begin and end, of a kernel that does nothing; none where nobody says.

    Of a call's further kernels from one's begin to the next one's, which a graph launches without the host.
    """
    found = machine.values
    if not found.get(LAUNCH):
        return ()
    further = NEXT if NEXT in found else LAUNCH
    names = (LAUNCH, *(kernels - 1) * (further,))
    return tuple(Term("launch", "launch", found[name] * NS, name, found[name]) for name in names)
