"""Kernels as an author might get them wrong.

69 of an outside audit, 11 of the literature, 9 of Blackwell, 6 of work beside other work, 3 of boxes.
"""

from tests.sabotage.edits.arithmetic import ARITHMETIC
from tests.sabotage.edits.beside import BESIDE
from tests.sabotage.edits.blackwell import BLACKWELL
from tests.sabotage.edits.memory import MEMORY
from tests.sabotage.edits.shared import SHARED
from tests.sabotage.edits.streams import STREAMS
from tests.sabotage.edits.tensor import TENSOR

EDITS = (*MEMORY, *STREAMS, *SHARED, *ARITHMETIC, *TENSOR, *BLACKWELL, *BESIDE)
