"""Attention in the manner of sm100a."""

from typing import Any

from microbench.compile import Defines
from microbench.emulator import TensorMap
from tests.emulated.attention import Attention
from tests.emulated.planted import Variant

# Where P goes: over S in tensor memory, or to shared memory.
ROOMS = (0, 1)

# Wrong numbers alone show an instruction descriptor that is legal and another one.
PLANTED = {
    "MISSING_FENCE_AFTER_SCORES": "fence: tcgen05.ld .* after tcgen05.mma.* without tcgen05.fence::after_thread_sync",
    "MISSING_FENCE_BEFORE_P": "fence: tcgen05.mma.* after tcgen05.st .* not execute tcgen05.fence::before_thread_sync",
    "MISSING_FENCE_AFTER_P": "fence: tcgen05.mma.* after tcgen05.st .* without tcgen05.fence::after_thread_sync",
    "MISSING_SCORES_WAIT": "race: tcgen05.* of tensor memory is not ordered after tcgen05",
    "WRONG_SCORES_PHASE": "race: tcgen05.* of tensor memory is not ordered after tcgen05|deadlock: .*mbarrier",
    "MISSING_OUTPUT_WAIT": "race: tcgen05.ld .* column 256 .* is not ordered after tcgen05.mma",
    "MISSING_LD_WAIT": "race: tcgen05.st .* not ordered after tcgen05.ld by warp ., which its warp has not waited for",
    "MISSING_ST_WAIT": "race: tcgen05.mma.* not ordered after tcgen05.st by warp ., which its warp has not waited for",
    "EARLY_RELEASE": "race: cp.async.bulk.tensor load .* not ordered after the read by the tensor cores",
    "MISSING_COMMIT": "deadlock: .*mbarrier",
    "OUTPUT_OVER_SCORES": "race: tcgen05.* column 128 of tensor memory is not ordered after tcgen05",
    "TOO_FEW_COLUMNS": "out of bounds: tcgen05.mma",
    "WRONG_COLUMNS_OF_INSTRUCTION": "",
    "WRONG_TYPE_OF_INSTRUCTION": "",
    "WRONG_MAJOR_OF_INSTRUCTION": "race: tcgen05.mma.* at shared address .* not ordered after the write by a copy",
    "DESCRIPTOR_OF_WGMMA": "bits 46 to 48 are the constant 1",
    "LANES_OF_ANOTHER_WARP": "tcgen05.ld at lane 0: warp . of the block reaches lanes",
    "TOO_FEW_EXPECTED": "deadlock: .*mbarrier",
    "TOO_MANY_EXPECTED": "deadlock: .*mbarrier",
    "MISSING_PROXY_FENCE": "proxy: tcgen05.mma.* through the async proxy, but thread .* without fence.proxy.async",
    "ALLOC_AFTER_RELINQUISH": "tcgen05.alloc after tcgen05.relinquish_alloc_permit",
    "ONE_FACTOR_BARRIER": "deadlock: .*mbarrier",
    "EARLY_DEALLOC": "race: tcgen05.dealloc .* not ordered after tcgen05",
    "MISSING_DEALLOC": "the block ended without tcgen05.dealloc of 512 columns",
}


class TestAttention(Attention):
    name, threads, rows, sequence = "attention_sm100a", 320, 128, 512
    archs, opcodes = ("sm100a",), frozenset({"UTCHMMA", "UTCBAR", "LDTM", "STTM", "UTMALDG", "SYNCS"})
    variants = tuple({"p_in_shared": room, "head_dim": dim} for dim in (64, 128) for room in ROOMS)
    random = tuple({"p_in_shared": room, "sequence": 384} for room in ROOMS)
    bugs = PLANTED
    # Found by the other modes alone: here the reader of a phase is never a phase behind.
    missed = frozenset({("ONE_FACTOR_BARRIER", "lazy")})

    def with_bug(self, bug: str) -> Variant:
        return {"p_in_shared": int(bug == "MISSING_PROXY_FENCE")}

    def defines(self, head_dim: int = 64, p_in_shared: int = 0, **_: Any) -> Defines:
        return ("HEAD_DIM", head_dim), ("P_IN_SHARED", p_in_shared)

    def smem_bytes(self, head_dim: int, p_in_shared: int = 0, **_: Any) -> int:
        return 5 * 128 * head_dim * 2 + p_in_shared * 128 * 256 + 3 * 128 * 4 + 18 * 8 + 4

    def tensors(self, inputs: list[Any], out: Any) -> tuple[Any, ...]:
        return (*(TensorMap(each, (128, 64), "bf16", swizzle=128).emulated() for each in inputs), out)
