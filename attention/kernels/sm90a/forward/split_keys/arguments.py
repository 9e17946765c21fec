"""The argument of forward_sm90a.cu, and the sizes that follow from a problem."""

from dataclasses import dataclass, fields

from attention.kernels.launch.launch_struct import LATENESS, of_kernel, structure
from attention.kernels.launch.strided import SPLIT
from attention.kernels.sm90a.forward.warp_specialised import arguments as whole
from attention.problem import AttentionProblem
from attention.tile import RING
from attention.variant import Config, CudaBuild, Settled, settle

KERNEL = "attention_forward_sm90a_split"
STATE_FLOATS = 8  # of a row: the four lanes that have a part of it each leave the softmax of both of their rows
FIELDS = of_kernel(whole.HEAD, tail=whole.TAIL, last=(*whole.LAST, *SPLIT, *LATENESS))
Launch = structure(FIELDS)

SETTLED = (
    Settled("stages", lambda problem, _: RING, "rows of many keys do not cross one another"),
    Settled("q_in_registers", lambda problem, _: 0, "few tiles of rows follow one another, which it brings forward"),
    Settled(whole.SHARED_KEYS, lambda problem, _: 0, "each block has a part of the keys", concerns=lambda _: False),
    *(each for each in whole.SETTLED if each.name != whole.SHARED_KEYS),
)


@dataclass(frozen=True)
class Shape(whole.Shape):
    """A tile, and the blocks that share its keys."""

    key_splits: int = 1

    @property
    def partial_floats(self) -> int:
        """What one part leaves: of each row its outputs and its softmax."""
        return self.held_rows * (self.value_dim + STATE_FLOATS)


def shape_of(problem: AttentionProblem, config: Config) -> Shape:
    """The tile of one configuration."""
    tile = whole.shape_of(problem, settle(SETTLED, problem, config))
    sizes = {each.name: getattr(tile, each.name) for each in fields(tile)}
    return Shape(**sizes, key_splits=config["key_splits"])


def build_of(problem: AttentionProblem, config: Config) -> CudaBuild:
    """What config.cuh asks of NVRTC, and what a launch takes: however many parts there are, the same."""
    build = whole.build_of(problem, settle(SETTLED, problem, config))
    return CudaBuild(KERNEL, (*build.defines, ("KEY_PARTS", 1)), build.threads, build.smem_bytes)
