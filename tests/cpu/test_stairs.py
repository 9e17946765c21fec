"""Steps of keys below a right edge are summed up as they would be counted one by one."""

from hypothesis import given
from hypothesis import strategies as st

from attention.choose.stairs import Stairs, floor_sum


@given(count=st.integers(0, 50), slope=st.integers(0, 300), begin=st.integers(0, 500), wide=st.integers(1, 200))
def test_floors_of_a_line_are_summed(count: int, slope: int, begin: int, wide: int) -> None:
    assert floor_sum(count, slope, begin, wide) == sum((slope * i + begin) // wide for i in range(count))


@given(
    steps=st.integers(1, 60),
    rows=st.integers(1, 256),
    columns=st.integers(1, 256),
    heads=st.integers(1, 8),
    right=st.integers(-5000, 5000),
    keys=st.integers(1, 5000),
)
def test_a_staircase_has_what_its_steps_have(
    steps: int, rows: int, columns: int, heads: int, right: int, keys: int
) -> None:
    stairs = Stairs(steps, rows, columns, heads, right, keys)
    ends = (((row + 1) * rows - 1) // heads + right + 1 for row in range(steps))
    met = [-(-min(keys, max(0, end)) // columns) for end in ends]
    assert [stairs.met(row) for row in range(steps)] == met == sorted(met)
    assert stairs.met_in_all() == sum(met)
