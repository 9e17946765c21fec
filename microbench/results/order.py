"""Constants that cannot be right beside one another: a cache that is slower than what lies behind it."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from microbench.results.profile_constant import TWIN_SUFFIX, ProfileConstant

# Each is less than the next. The chase by index goes through one more instruction than the raw one.
ORDERS = (
    ("l1_latency_cycles", "l1_index_latency_cycles", "l2_latency_cycles", "dram_latency_cycles"),
    ("smem_latency_cycles", "smem_index_latency_cycles", "l2_latency_cycles"),
    ("l1_size_bytes", "l2_visible_size_bytes", "l2_size_bytes"),
)
# On a CPU the L2 is one core's, and the memory all cores'.
ORDERS_OF_A_GPU = (("dram_bandwidth_bytes_per_s", "l2_bandwidth_bytes_per_s"),)
INTERVAL, LATENCY = "_interval_cycles", "_latency_cycles"


def in_order(constants: Sequence[ProfileConstant]) -> tuple[list[ProfileConstant], list[str]]:
    """The constants without those that contradict one another, and a sentence for each contradiction.

    Which of the two is wrong nobody can tell from the numbers, so that both go.
    """
    wrong: set[str] = set()
    said = []
    for less, more in _pairs({constant.name: constant for constant in constants}):
        # What starts every n cycles takes at least as long; a level is never as fast as the one before it.
        if less.value > more.value or (less.value == more.value and not less.name.endswith(INTERVAL)):
            wrong |= {less.name, more.name}
            said.append(
                f"{less.name} is {less.value:g} and {more.name} {more.value:g} {more.unit}, and the first must be "
                f"less; both are left out ({less.probe}, {more.probe})."
            )
    return [constant for constant in constants if constant.name not in wrong], said


def _pairs(constants: Mapping[str, ProfileConstant]) -> Iterator[tuple[ProfileConstant, ProfileConstant]]:
    of_a_gpu = any(constant.method != "host" for constant in constants.values())
    for order in (*ORDERS, *(ORDERS_OF_A_GPU if of_a_gpu else ())):
        for twin in ("", TWIN_SUFFIX):
            yield from pairwise(constants[name + twin] for name in order if name + twin in constants)
    for name, interval in constants.items():
        latency = constants.get(name.replace(INTERVAL, LATENCY))
        if INTERVAL in name and latency is not None:
            yield interval, latency
