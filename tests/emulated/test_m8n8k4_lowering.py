"""m8n8k4 against NVIDIA's own lowering: for sm_90a ptxas writes the routine out, and its SASS is executed here.

Nobody of this project wrote that routine, so a misreading of the layout tables cannot be shared with it.
"""

from typing import Any

import numpy as np
import pytest

from microbench.compile import compile_source
from microbench.emulator import EmulatedDevice
from microbench.verify.differential.operands import fragments
from microbench.verify.differential.tensor_cores import ORDERS
from tests.emulated.sass_lanes import Warp
from tests.emulated.wrappers import NAME, SOURCE, integers, load, mma_defines

A_AT, B_AT, D_AT, PARAMETERS = 0x100000, 0x200000, 0x300000, 0x210


def lowered(defines: dict[str, int | str], a: Any, b: Any, d: Any) -> Any:
    """The words of d after NVIDIA's routine."""
    cubin = compile_source(SOURCE, NAME, "sm90a", tuple(defines.items()), kernel="mma")
    memory: dict[int, int] = {}
    for start, array in ((A_AT, a), (B_AT, b), (D_AT, d)):
        memory |= {start + 4 * i: int(word) for i, word in enumerate(array.view(np.uint32).ravel())}
    Warp({PARAMETERS: A_AT, PARAMETERS + 8: B_AT, PARAMETERS + 16: D_AT}, memory).run(cubin.instructions())
    return np.array([memory[D_AT + 4 * i] for i in range(d.size)], np.uint32).reshape(d.shape)


@pytest.mark.parametrize("f32", [True, False])
@pytest.mark.parametrize(("a_order", "b_order"), ORDERS)
def test_the_emulator_agrees_with_nvidias_routine(a_order: str, b_order: str, f32: bool) -> None:
    rng = np.random.default_rng(8)
    a, b = fragments(integers(rng, 32, 4), "f16"), fragments(integers(rng, 32, 4), "f16")
    c = integers(rng, 32, 8)
    d: Any = c if f32 else fragments(c, "f16")
    defines = mma_defines(f"mma_m8n8k4<ptx::Order::{a_order},ptx::Order::{b_order}>", a, b, d)
    expected = lowered(defines, a, b, d)
    load(EmulatedDevice(), "mma", **defines)((1,), (32,), (a, b, d))
    kind = np.float32 if f32 else np.float16
    np.testing.assert_array_equal(d.view(kind), expected.view(kind))
