"""Processes beside this one end where it is interrupted, and lose what they were handed."""

import time

import pytest

from microbench.console.processes import beside


def test_an_interrupt_waits_for_no_work_that_is_under_way() -> None:
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt), beside(1) as pool:
        running = [pool.submit(time.sleep, 600) for _ in range(4)]
        while not any(each.running() for each in running):
            time.sleep(0.01)
        raise KeyboardInterrupt
    assert time.monotonic() - began < 300
    with pytest.raises(BaseException):  # noqa: B017 - cancelled, or of a broken pool
        running[0].result(60)


def test_who_is_not_interrupted_has_all_results() -> None:
    with beside(1) as pool:
        found = list(pool.map(abs, (-1, -2, -3)))
    assert found == [1, 2, 3]
