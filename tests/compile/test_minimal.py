"""The smallest kernel of each generation holds its tensor instruction, twice, and no wait where there need be none."""

import pytest

from microbench.compile import compile_source
from microbench.layouts import HERE
from microbench.sass.instruction import Instruction

FILES = sorted((HERE / "minimal").glob("*.cu"))
# The head in SASS, and how many an instruction of PTX becomes.
HEADS = {"sm70": ("HMMA", 4), "sm80": ("HMMA", 1), "sm90a": ("HGMMA", 1), "sm100a": ("UTCHMMA", 1)}


def instructions(name: str) -> tuple[Instruction, ...]:
    source = HERE / "minimal" / f"{name}.cu"
    return compile_source(source.read_text(), source.name, name, kernel="minimal").instructions()


def test_every_generation_has_one() -> None:
    assert {file.stem for file in FILES} == set(HEADS)


@pytest.mark.parametrize("name", HEADS)
def test_it_multiplies_twice(name: str) -> None:
    head, count = HEADS[name]
    assert [i.head for i in instructions(name)].count(head) == 2 * count


@pytest.mark.parametrize("name", ["sm90a", "sm100a"])
def test_asynchronous_products_stand_behind_each_other(name: str) -> None:
    head, _ = HEADS[name]
    code = instructions(name)
    first, second = (at for at, instruction in enumerate(code) if instruction.head == head)
    assert not any(instruction.waits for instruction in code[first : second + 1])
    assert all(code[at].control.write_barrier is None for at in (first, second))
