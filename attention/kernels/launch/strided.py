"""The argument of kernels that read Q, K and V where they lie, by address and strides, a block for each tile of rows.

No torch here: it is told the build matrix as well.
"""

from attention.kernels.launch.launch_struct import LSE, Member, members, of_kernel, structure

FIELDS = of_kernel(
    head=(
        *members("const void*", "q k v"),
        Member("void*", "out"),
        LSE,
        *(
            member
            for name in ("q", "k", "v", "out")
            for member in members("long long", f"{name}_row {name}_head {name}_batch", "in elements, multiples of 8")
        ),
    )
)
Launch = structure(FIELDS)
