"""FFMA beside wgmma: how much of a softmax's scaling, masking and sums hides behind products that are in flight.

FFMA takes every issue slot of its scheduler and reads three registers, where MUFU takes one slot of eight. wgmma with A
in registers reads that register file too.
"""

from microbench.shapes.beside import FFMA
from microbench.shapes.wgmma_beside import wgmma_beside

PROBE = wgmma_beside("How much of the time of FFMA hides behind wgmma, in the same warpgroup and in another one?", FFMA)
