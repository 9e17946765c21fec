"""What an SM clock says of a measurement: the step it ran at, and whether that is the clock the board is meant for.

NVML's reasons lag: on an H100 'power-cap' stood for a second after the load had gone, at 2040 MHz and more, and never
showed while the tensor cores pulled the clock down to 1808. So the clock that was measured judges, and NVML is a note.
"""

# The clocks of every board since Volta lie this far apart (nvidia-smi -q -d SUPPORTED_CLOCKS).
STEP_MHZ = 15.0
# Of the highest clock that the driver admits. An H100 idles one step above it (1995 for 1980 MHz).
SLOWEST, FASTEST = 0.985, 1.01


def step(mhz: float) -> int:
    """The number of the clock's step; measurements of one step ran at one clock."""
    return round(mhz / STEP_MHZ)


def is_off(mhz: float | None, nominal_hz: float | None) -> bool:
    """True where a measured clock is not the nominal one; False where either is unknown."""
    if mhz is None or nominal_hz is None:
        return False
    return not SLOWEST <= mhz * 1e6 / nominal_hz <= FASTEST
