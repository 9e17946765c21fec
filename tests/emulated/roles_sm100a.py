"""Blocks of the sm100a forward whose roles are explored: small enough for every order, together with every barrier."""

from dataclasses import dataclass
from functools import cache

from microbench.emulator import EmulatedDevice
from tests.emulated.forward_case import ForwardCase
from tests.emulated.forward_launch import Kernel
from tests.emulated.forward_sm100a import PATH, config_of, run
from tests.emulated.role_graph import Graph, graph_of, traced

KEYS = 64  # of a tile
Build = tuple[int, int, bool]  # head dim, ring, whether sequences are packed


@dataclass(frozen=True)
class Block:
    """What one block works on: a tile of rows of each head with so many tiles of keys, or of each packed sequence.

    64 has two query tiles, 192 and 256 have one. `ring` stages stand for what shared memory holds: with few of them
    the ring goes round in few turns.
    """

    head_dim: int
    tiles: int
    heads: int = 1
    ring: int = 0
    packed: tuple[int, ...] = ()  # tiles of keys of each sequence

    @property
    def build(self) -> Build:
        """What is compiled: blocks of one build have the same barriers."""
        return self.head_dim, self.ring, bool(self.packed)

    @property
    def case(self) -> ForwardCase:
        """The problem, whose last tiles are cut short where sequences are packed."""
        lengths = tuple((20, tiles * KEYS - 7) for tiles in self.packed)
        return ForwardCase(
            *(1, self.heads, 1, 20, self.tiles * KEYS, self.head_dim),
            lengths=lengths,
            softcap=1.0 if lengths else 0.0,
        )


@cache
def graph(block: Block, *, apart: bool = False) -> Graph:
    """Its roles, or `apart` its warps."""
    ring = (("STAGES", block.ring),) if block.ring else ()
    plain = Kernel(PATH, config_of(KEYS, dynamic=0), block.case.problem, changes=ring)
    kernel = traced(plain, "forward_sm100a.cu")
    run(EmulatedDevice("lazy"), block.case, kernel, blocks=1)
    return graph_of(kernel, apart=apart)


# Each takes 0.1 to 9 s.
EXPLORED = (
    Block(64, 1),
    Block(64, 2),
    Block(64, 3, ring=2),
    Block(192, 1),
    Block(192, 2),
    Block(192, 3),
    Block(192, 4),
    Block(192, 2, heads=2),
    Block(192, 3, heads=2, ring=2),
    Block(256, 3),
    Block(256, 5),
    Block(256, 2, heads=2),
    Block(256, 1, heads=3),
    Block(256, 1, ring=2, packed=(1, 2)),
)
# 10 to 60 s each.
SLOWLY_EXPLORED = (
    Block(64, 3),
    Block(64, 1, heads=2),
    Block(64, 1, heads=3, ring=2),
    Block(256, 1, ring=2, packed=(1, 1, 2)),
)
# Two query tiles, one, and packed sequences: of these builds every barrier is really waited for in some block.
WHOLE: tuple[Build, ...] = ((64, 2, False), (256, 0, False), (256, 2, True))


def blocks_of(build: Build) -> list[Block]:
    """Those that are explored, the quick ones first."""
    return [block for block in (*EXPLORED, *SLOWLY_EXPLORED) if block.build == build]
