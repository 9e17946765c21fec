"""The ladders: each rung is right by its name, is a kernel of its own, and can be built."""

import pytest

from attention.compare import cells, ladder
from attention.compare.ladders import Ladder, Rung, ampere
from attention.problem import AttentionProblem
from attention.variant import Config, CudaBuild, by_path
from microbench.machine.arch import by_name
from microbench.results.profile import Profile

H100 = Profile.load("h100-sxm-80gb")
LADDERS = pytest.mark.parametrize("climbed", ladder.LADDERS, ids=lambda climbed: climbed.variant)
CELLS = pytest.mark.parametrize("problem", [cell.problem for cell in cells.grid()], ids=str)


def rungs(climbed: Ladder, problem: AttentionProblem) -> tuple[Rung, ...]:
    return climbed.rungs(H100, problem)


def build(climbed: Ladder, problem: AttentionProblem, config: Config) -> CudaBuild:
    (step,) = by_path(climbed.variant).steps(problem, config)
    return step


@LADDERS
def test_no_two_rungs_are_the_same_kernel_and_each_stands_beside_one_that_is_timed(climbed: Ladder) -> None:
    for cell in cells.grid():
        found, timed = rungs(climbed, cell.problem), {""}
        made = [build(climbed, cell.problem, rung.config) for rung in found]
        assert len(set(made)) == len({rung.name for rung in found}) == len(made) > 3
        for rung in found:
            assert rung.beside in timed
            timed |= set() if rung.lacks else {rung.name}


@CELLS
def test_what_the_ampere_ladder_says_is_all_that_its_build_reads(problem: AttentionProblem) -> None:
    axes = {"WARPS", "ROWS_PER_WARP", "TILE_KEYS", "SLICE_KEYS", "BLOCKS", "Q_IN_REGISTERS", "AHEAD", "FENCE"}
    for rung in rungs(ampere.LADDER, problem):
        made = dict(build(ampere.LADDER, problem, rung.config).defines)
        assert sorted(value for axis, value in made.items() if axis in axes) == sorted(
            dict(rung.config.values).values()
        )


@CELLS
def test_every_block_of_the_ampere_ladder_fits_its_sm(problem: AttentionProblem) -> None:
    limits = by_name("sm90a").limits
    for rung in rungs(ampere.LADDER, problem):
        made, blocks = build(ampere.LADDER, problem, rung.config), rung.config["blocks"]
        assert made.smem_bytes <= limits.smem_bytes_per_block, rung.name
        assert blocks * (made.smem_bytes + 1024) <= 228 * 1024, rung.name  # each block reserves 1 KiB of the SM's


def test_what_is_to_be_compiled_is_what_is_timed() -> None:
    for climbed in ladder.LADDERS:
        listed = list(ladder.builds(H100, [climbed]))
        timed = [rung for cell in cells.grid() for rung in rungs(climbed, cell.problem) if not rung.lacks]
        assert [config for _, _, config in listed] == [rung.config for rung in timed]
        assert {variant.path for variant, _, _ in listed} == {climbed.variant}
        assert len({problem for _, problem, _ in listed}) == len(cells.grid())


def test_a_machine_without_hopper_instructions_has_one_ladder() -> None:
    a100 = H100.model_copy(update={"arch": "sm80"})
    assert {variant.path for variant, _, _ in ladder.builds(a100)} == {ampere.VARIANT}
