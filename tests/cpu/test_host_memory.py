"""microbench.measure.host_memory: aligned, fresh memory."""

import numpy as np
import pytest

from microbench.measure.host_memory import HUGE_PAGE, Memory


@pytest.mark.parametrize("nbytes", [64, 5000, HUGE_PAGE, 3 * HUGE_PAGE + 64])
def test_memory_is_aligned_and_holds_what_is_asked(nbytes: int) -> None:
    memory = Memory(nbytes)
    whole = memory.array(np.uint8)
    whole[:] = 7
    assert memory.address % HUGE_PAGE == 0 and whole.__array_interface__["data"][0] == memory.address
    assert whole.nbytes == nbytes
    part = memory.array(np.float32, 64 * (nbytes > 64), 32)
    assert part.__array_interface__["data"][0] % 64 == 0 and part.nbytes == 32
    assert memory.page_flag() in ((), ("small-pages",))
