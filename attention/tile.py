"""What one tile of a kernel asks of the machine: amounts that a model turns into time."""

from dataclasses import dataclass
from typing import NamedTuple


class Demand(NamedTuple):
    """`amount` of something that the constant `rate` of a profile counts per second (or per SM and clock).

    Demands of one `phase` overlap, so that the largest of them counts; the phases of a kernel follow one another. Those
    with `chains` follow one another too, where each waits for the one before: a chain's sum is a term of its phase. It
    is another sight of work that other demands count, and adds nothing to what is to be hidden.
    """

    term: str
    phase: str
    amount: float
    rate: str
    resident_bytes: float = 0.0
    chains: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tile:
    """What one full tile of rows x columns scores asks for, and how finely work on masked scores is left out.

    `edge` is asked once for every tile row: reading Q, writing out and lse.
    `heads` of a group share a tile's rows, and with them one reading of K and V.
    `split_keys`: tiles of one row go to several units where rows alone would leave units idle.
    `key_splits`: blocks among which the tiles of each row are dealt, whatever the problem; each has an edge of its own.
    `kernels`: those of a call, each of which waits for the one before.
    `unpriced`: what it costs besides and no constant tells, in words; empty where demands and edge are all.
    """

    rows: int
    columns: int
    row_step: int
    column_step: int
    demands: tuple[Demand, ...]
    edge: tuple[Demand, ...] = ()
    heads: int = 1
    split_keys: bool = False
    key_splits: int = 1
    kernels: int = 1
    unpriced: str = ""


FETCH_BYTES = 128  # that a miss of TMA's brings into the L2 at least (kernels.launch.tensor_map)
RING = 2  # tiles of K, and of V, that a ring of warpgroups holds where tiles of rows do not cross one another


class WarpgroupTile(NamedTuple):  # like Demand and WarpTile hashed and compared in C: a choice looks much up by them
    """A tile of a kernel whose warpgroups share an SM and take the same keys: 64 rows each, by wgmma.

    `value_dim` is that of the compiled kernel, as `head_dim` is; `q_in_registers`: Q is no operand from shared memory.
    `mask_ahead`: a mask comes to shared memory a tile ahead, where it is not read beside the scores. Rows of K and V
    come in panels of so many columns, each a box of its own to TMA, and all stages hold so many `boxes`; 0 where nobody
    knows. So many neighbouring blocks `share` a mask's rows, which come once for all of them. `seeded`: scores begin as
    the mask, before their products. A ring holds `stages` tiles of K and as many of V; of more than two, tiles of rows
    cross: the first scores of one are multiplied beside the last p V of the one before. The keys of a tile of rows are
    dealt to `key_splits` blocks, whose parts all SMs bring together. Heads of a `group` share rows, whole queries of
    them in each of the `warpgroups` that have some. Among so many `sequences` that of a tile of rows is searched for; 1
    where its number says which.
    """

    keys: int
    warpgroups: int
    head_dim: int
    value_dim: int
    q_in_registers: bool
    mask_ahead: bool = False
    key_panel: int = 0
    value_panel: int = 0
    boxes: int = 0
    share: int = 1
    seeded: bool = False
    stages: int = RING
    key_splits: int = 1
    group: int = 1
    sequences: int = 1

    @property
    def crosses(self) -> bool:
        return self.stages > RING


class WarpTile(NamedTuple):
    """A tile of a kernel whose warps each multiply and take exponentials for themselves, by mma.sync m16n8k16.

    `blocks` of `warps` share an SM. A warp holds `warp_rows` rows and takes the `keys` of a tile in slices; a block
    meets a barrier at every tile. `ahead` fragments of K and V are fetched from shared memory before their products,
    and Q's with them in every slice unless it stays in registers. Dims are those of the compiled kernel. Threads side
    by side copy `key_span_bytes` of a row of K, `value_span_bytes` of V, and the next threads another row's. Heads of a
    `group` share a block's rows, and `key_splits` blocks the keys of a tile of rows, whose parts all `threads` of the
    last one bring together, so many `parts_at_once`: `warps` are those that have rows. `key_warps` of them have the
    same rows, `used_rows` of which a query has, and each its own slices of every tile; then `stages` tiles are in
    shared memory, all but one of them under way. A block takes `smem_bytes` of shared memory, where that may leave an
    SM fewer blocks.

    Where it is not `pipelined`, as FlashAttention-2 is not, scores, softmax and p V of a slice follow one another,
    every slice takes its maximum, and blocks come in the order of their rows, whatever these see. Of two `kernels` the
    second one adds parts up.
    """

    blocks: int
    warps: int
    warp_rows: int
    keys: int
    slice_keys: int
    head_dim: int
    value_dim: int
    q_in_registers: bool
    ahead: int
    key_span_bytes: int = 128
    value_span_bytes: int = 128
    group: int = 1
    key_splits: int = 1
    threads: int = 0
    key_warps: int = 1
    stages: int = 2
    smem_bytes: int = 0
    used_rows: int = 0
    parts_at_once: int = 16
    pipelined: bool = True
    kernels: int = 1

    @property
    def rows(self) -> int:
        """Of a block."""
        return self.warps // self.key_warps * self.warp_rows

    @property
    def step_keys(self) -> int:
        """Of all warps that share rows, while each takes a slice."""
        return self.key_warps * self.slice_keys

    @property
    def takes_maxima(self) -> bool:
        """Whether every slice takes its true maximum: of warps that share rows, and where it is not pipelined."""
        return self.key_warps > 1 or not self.pipelined

    @property
    def asks_for_idle(self) -> bool:
        """Whether each slice asks if its warp has rows: where blocks may share keys, and warps share no rows."""
        return self.pipelined and self.threads > 0 and self.key_warps == 1

    @property
    def scores(self) -> int:
        """Of a warp's slice."""
        return self.warp_rows * self.slice_keys
