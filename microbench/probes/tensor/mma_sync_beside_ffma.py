"""FFMA beside mma.sync: how much of a softmax's scaling, masking and sums hides behind products, without wgmma.

Both read three operands from the register file, and FFMA wants each issue slot where an SM has 128 lanes of it.
"""

from microbench.shapes.beside import FFMA
from microbench.shapes.mma_beside import mma_beside

PROBE = mma_beside(
    "How much of the time of FFMA hides behind mma.sync, in the same warps and in others?", FFMA, results=(128, 256)
)
