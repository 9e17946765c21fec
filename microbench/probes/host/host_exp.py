"""f32 exponentials per second: the polynomial that LLVM can vectorise, and the C library's, one call at a time.

The polynomial is 2**f on [-1/2, 1/2] after the usual split of x * log2(e) into a whole and a broken part, interpolated
at Chebyshev points; its relative error stays under 1e-6. Numba without Intel's SVML calls the C library's expf for
each element.
"""

from typing import Any

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial

from microbench.compile.host_code import compiled, provable
from microbench.machine.arch import Machine
from microbench.measure.host import HostBench
from microbench.measure.host_asm import LoopContract
from microbench.point import Point
from microbench.probe import Axis
from microbench.shapes.lap import Lap, fma_per_clk, throughput, uniform

ELEMENTS = 1024
DEGREE = 5
LOG2_E = np.float32(1 / np.log(2))
HALF = np.float32(0.5)
_FIT = Chebyshev.interpolate(np.exp2, DEGREE, domain=[-0.5, 0.5]).convert(kind=Polynomial)
C0, C1, C2, C3, C4, C5 = _FIT.coef.astype(np.float32)


@provable()
def polynomial(x: Any, out: Any, laps: int) -> None:
    """Exponentials of x, in [-87, 88], into out."""
    for _ in range(laps):
        for i in range(x.size):
            power = x[i] * LOG2_E
            whole = np.floor(power + HALF)
            part = power - whole
            value = ((((C5 * part + C4) * part + C3) * part + C2) * part + C1) * part + C0
            # 2**whole is a float whose exponent field is whole + 127.
            out[i] = value * np.int32((np.int32(whole) + 127) << 23).view(np.float32)


@compiled()
def libm(x: Any, out: Any, laps: int) -> None:
    for _ in range(laps):
        for i in range(x.size):
            out[i] = np.exp(x[i])


def arrays(bench: HostBench) -> tuple[Any, ...]:
    """Scores below their row's maximum, as softmax has them."""
    return uniform(bench, ELEMENTS, -20.0, 0.0), uniform(bench, ELEMENTS, 0.0, 1.0)


def lap(point: Point) -> Lap:
    """One of the two kernels; the polynomial's contract is its multiply-adds."""
    if point["method"] == "libm":
        return Lap(libm, arrays, ELEMENTS)
    return Lap(polynomial, arrays, ELEMENTS, LoopContract(fma=DEGREE, memory=2))


def per_clk(machine: Machine, point: Point) -> float | None:
    """The C library may use another algorithm, or another unit: nobody can know its bound."""
    return None if point["method"] == "libm" else fma_per_clk(DEGREE)(machine, point)


PROBE = throughput(
    asks="How many f32 exponentials does this CPU do per second, by polynomial and by the C library?",
    lap=lap,
    metric="exp",
    unit="exp",
    per_clk=per_clk,
    why=f"{DEGREE} multiply-adds each on a core's pipes",
    constants={"exp_f32": {"method": "polynomial"}, "exp_f32_libm": {"method": "libm"}},
    axes=(Axis("method", ("polynomial", "libm")),),
)
