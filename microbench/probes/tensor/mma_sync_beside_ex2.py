"""MUFU.EX2 beside mma.sync: how much of a softmax's exponentials hides behind products, without wgmma.

A warp of MUFU.EX2 holds its quarter of the pipe for eight cycles and an HMMA its tensor core for six on Hopper, so that
the scheduler has slots left for either. 32 exponentials a thread take 256 cycles, 32 products 192 there and 256 on an
A100.
"""

from microbench.shapes.beside import EX2
from microbench.shapes.mma_beside import mma_beside

PROBE = mma_beside(
    "How much of the time of exponentials (MUFU.EX2) hides behind mma.sync, in the same warps and in others?",
    EX2,
    results=(32, 16),
)
