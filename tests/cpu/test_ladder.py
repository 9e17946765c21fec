"""The ladders: each rung is right by its name, differs from its neighbour in one idea, and can be built."""

import pytest

from attention.peers import cells, ladder
from attention.peers.ladders import Ladder, Rung, ampere, hopper
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


def changed(rung: Rung, beside: Rung) -> set[str]:
    assert [axis for axis, _ in rung.config.values] == [axis for axis, _ in beside.config.values]
    return {axis for axis, value in rung.config.values if value != beside.config[axis]}


@LADDERS
@CELLS
def test_every_rung_has_its_own_name_and_stands_beside_an_earlier_one_that_is_timed(
    climbed: Ladder, problem: AttentionProblem
) -> None:
    timed: set[str] = set()
    names = [rung.name for rung in rungs(climbed, problem)]
    assert len(set(names)) == len(names) > 3
    for rung in rungs(climbed, problem):
        assert rung.beside in timed if timed else rung.beside == ""
        timed |= set() if rung.lacks else {rung.name}


@LADDERS
@CELLS
def test_steps_lead_up_one_by_one_and_asides_follow(climbed: Ladder, problem: AttentionProblem) -> None:
    steps = [rung for rung in rungs(climbed, problem) if not rung.aside]
    assert list(rungs(climbed, problem)[: len(steps)]) == steps
    timed = [rung for rung in steps if not rung.lacks]
    assert [rung.beside for rung in timed] == ["", *(rung.name for rung in timed[:-1])]


@LADDERS
@CELLS
def test_no_two_rungs_are_the_same_kernel(climbed: Ladder, problem: AttentionProblem) -> None:
    made = [build(climbed, problem, rung.config) for rung in rungs(climbed, problem)]
    assert len(set(made)) == len(made)


@CELLS
def test_a_rung_of_the_hopper_kernel_switches_one_idea(problem: AttentionProblem) -> None:
    first, *others = rungs(hopper.LADDER, problem)
    assert not any(first.config[idea] for idea in hopper.IDEAS)
    named = {first.name: first} | {rung.name: rung for rung in others}
    for rung in others:
        (idea,) = changed(rung, named[rung.beside])
        assert idea in (*hopper.IDEAS, "q_in_registers")
    top = named[others[-1].beside].config
    assert all(top[idea] for idea in hopper.IDEAS)


# A block of eight warps takes the registers of two of four. The rest is room that one idea takes from another.
TOGETHER = ({"warps", "blocks"}, {"warp_rows", "blocks"}, {"blocks", "q_in_registers"}, {"q_in_registers", "ahead"})


@CELLS
def test_a_rung_of_the_ampere_kernel_changes_one_value_or_two_that_belong_together(problem: AttentionProblem) -> None:
    first, *others = rungs(ampere.LADDER, problem)
    named = {first.name: first} | {rung.name: rung for rung in others}
    for rung in others:
        axes = changed(rung, named[rung.beside])
        assert len(axes) == 1 or axes in (*TOGETHER, {"slice_keys", "tile_keys"}), rung.name


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
    assert limits is not None
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
