"""What a block of one of our forwards passes in its machine code: a beginning, a loop over tiles of keys, an end."""

from dataclasses import dataclass

from microbench.compile import Cubin
from microbench.errors import BuildError
from microbench.issue.path import through_loop, usual
from microbench.issue.pipes import tensor_flops
from microbench.sass.instruction import Instruction
from microbench.sass.loops import Loop, loops

Path = tuple[Instruction, ...]


@dataclass(frozen=True)
class Phases:
    """Usual paths of one warp.

    tile     one trip of the main loop, whose keys every row sees
    masked   one trip of the loop of tiles that the mask cuts; the main loop's own where the kernel has no other
    """

    before: Path
    tile: Path
    masked: Path
    after: Path


def phases_of(cubin: Cubin) -> Phases:
    """Found by the loops that hold tensor instructions. Raises BuildError where there is none."""
    code = cubin.instructions()
    inner = _innermost([loop for loop in loops(code) if any(map(tensor_flops, loop.body))])
    if not inner:
        raise BuildError(f"No loop of {cubin.kernel} for {cubin.arch} holds a tensor instruction; nothing to estimate.")
    paths = sorted(((through_loop(loop), loop) for loop in inner), key=lambda each: (-flops(each[0]), len(each[0])))
    (tile, main), (masked, _) = paths[0], paths[-1]
    before = usual(code, 0, {tile[0].address})[:-1]
    passed = {each.address for each in (*before, *main.body)}
    exits = {each.address for each in code if each.head == "EXIT" and not each.predicate}
    after = usual(code, tile[-1].address + 16, exits, passed)
    return Phases(before, tile, masked, after)


def flops(path: Path) -> int:
    """Tensor operations of one warp on a path."""
    return sum(map(tensor_flops, path))


def _innermost(found: list[Loop]) -> list[Loop]:
    bodies = [frozenset(each.address for each in loop.body) for loop in found]
    return [loop for loop, body in zip(found, bodies, strict=True) if not any(other < body for other in bodies)]
