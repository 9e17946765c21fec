"""MUFU.EX2 beside wgmma: how much of a softmax's exponentials hides behind products that are in flight.

The pipes are separate; a warp that issues wgmma, the issue slots and the register file's ports are what they share.
"""

from microbench.shapes.beside import EX2
from microbench.shapes.wgmma_beside import wgmma_beside

PROBE = wgmma_beside(
    "How much of the time of exponentials (MUFU.EX2) hides behind wgmma, in the same warpgroup and in another one?", EX2
)
