"""How wide this CPU's vector registers are, and what of a tile they hold. No Numba here."""

from attention.kernels.host.forward.tiled_online_softmax.variant import VECTORS, rows_of_product
from microbench.compile import host_object


def vector_bytes() -> int:
    """Bytes of the widest vector register that is compiled for: 64 (AVX-512), 32 (AVX2) or 16 (SSE, NEON).

    That is this CPU's, unless the user narrowed it with Numba's own NUMBA_CPU_FEATURES.
    """
    present = set(host_object.cpu()[1].split(","))
    if "+avx512f" in present:
        return 64
    return 32 if {"+avx2", "+fma"} <= present else 16


VECTOR_BYTES = vector_bytes()
PRODUCT_ROWS = rows_of_product(VECTOR_BYTES)


def panel_lanes(element_bytes: int) -> int:
    """Queries in one panel: the lanes of VECTORS registers."""
    return VECTORS * VECTOR_BYTES // element_bytes
