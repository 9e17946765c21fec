"""The argument of kernels that read Q, K and V where they lie, by address and strides, a block for each tile of rows.

No torch here: it is told the build matrix as well.
"""

from attention.kernels.launch.launch_struct import LATENESS, LSE, Member, members, of_kernel, structure

_HEAD = (
    *members("const void*", "q k v"),
    Member("void*", "out"),
    LSE,
    *(
        member
        for name in ("q", "k", "v", "out")
        for member in members("long long", f"{name}_row {name}_head {name}_batch", "in elements, multiples of 8")
    ),
)
FIELDS = of_kernel(_HEAD, last=LATENESS)
Launch = structure(FIELDS)

# Of kernels that may deal the keys of a tile of rows to several blocks (common/key_splits.cuh).
SPLIT = (
    Member("float*", "partials", "what the blocks of a tile leave for the one that arrives last"),
    Member("int*", "arrivals", "of the blocks of each tile, 0 before and after a launch"),
    Member("int", "key_splits", "blocks of a tile"),
)
SPLIT_FIELDS = of_kernel(_HEAD, tail=SPLIT)
SplitLaunch = structure(SPLIT_FIELDS)

# And of those that leave them row by row.
_OF_ROWS = Member("int", "part_rows", "of a tile, that any sequence uses")
FEW_FIELDS = of_kernel(_HEAD, tail=(*SPLIT, _OF_ROWS), last=LATENESS)
FewLaunch = structure(FEW_FIELDS)
