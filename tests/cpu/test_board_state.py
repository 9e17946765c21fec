"""What NVML says of a board, and which of it `doctor` names."""

from dataclasses import replace

import pytest

from microbench.health.state import of_state
from microbench.machine.nvml import State

HEALTHY = State(True, 0, False, False, 16, 16, ("power-cap",), 60.0, 120.0, 700.0, 700.0)


def test_a_healthy_board_and_one_that_says_nothing_have_no_finding() -> None:
    assert not list(of_state(HEALTHY)) and not list(of_state(State()))


@pytest.mark.parametrize(
    ("state", "about"),
    [
        ({"ecc": False}, "ECC"),
        ({"ecc_uncorrected": 3}, "ECC"),
        ({"rows_pending": True}, "memory"),
        ({"rows_failed": True}, "memory"),
        ({"link_width": 8, "link_width_most": 16}, "PCIe"),
        ({"throttled": ("hw-thermal",)}, "clock"),
        ({"temperature_c": 91.0}, "temperature"),
        ({"power_limit_w": 500.0, "power_limit_usual_w": 700.0}, "power"),
    ],
)
def test_what_the_board_says_of_itself_is_a_finding(state: dict[str, object], about: str) -> None:
    assert [each.about for each in of_state(replace(HEALTHY, **state))] == [about]  # type: ignore[arg-type]
