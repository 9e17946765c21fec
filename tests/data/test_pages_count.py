"""What a page counts of a set that code draws or lists, it counts as that code does."""

import re

import pytest

from attention.campaign import rivals, set_floors, set_use
from microbench.machine import stamp
from microbench.results.profile import Profile

CALLS = (stamp.ROOT / "docs" / "calls.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("gpu", ["h100-sxm-80gb", "h200-sxm-141gb"])
def test_the_page_of_calls_says_how_many_problems_of_floors_there_are_and_how_many_ours_serve(gpu: str) -> None:
    (said,) = re.findall(r"our pick and every peer installed on (\d+) problems", CALLS)
    served = rivals.jobs(set_floors.problems(), Profile.load(gpu), ())
    assert int(said) == len(served) == len(set_floors.problems())


def test_it_says_how_many_problems_of_use_are_drawn() -> None:
    (said,) = re.findall(r"(\d+) problems drawn from a freeze", CALLS)
    assert int(said) == set_use.COUNT
