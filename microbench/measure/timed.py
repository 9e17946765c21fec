"""What timing a whole call among others gives, on a GPU or a CPU."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Sustained:
    """One call over and over: what is left of the clock once the GPU is hot, and what a call takes from the wall."""

    seconds: float  # a call
    clock_mhz: float
    joules: float | None  # a call; None where NVML counts no energy


@dataclass(frozen=True)
class Timed:
    """One call among others: seconds of each repeat, the clock it ran at, and what disturbed the round (`flags`).

    A repeat of a `burst` of calls is their mean. On a GPU `clocks_mhz` and `power_w` stand beside each of `seconds`:
    the clock of that call, and the board's power at the end of its round; None where the GPU does not say. `l2_read`:
    what filled the L2 before each call was read (measure.alternate).
    """

    seconds: tuple[float, ...]
    clock_mhz: float
    flags: tuple[str, ...] = ()
    sustained: Sustained | None = None
    burst: int = 1
    clocks_mhz: tuple[float | None, ...] = ()
    power_w: tuple[float | None, ...] = ()
    l2_read: bool = False
