"""The wrappers that a GPU is held against the emulator by compile for the GPUs that have them."""

import pytest

from microbench.compile import compile_source
from microbench.verify.differential.case import KERNELS

COMPILED = [
    ("sm70", "mma", {"MMA": "mma_m8n8k4<ptx::Order::col,ptx::Order::row>", "D_TYPE": "unsigned", "D_WORDS": 4}),
    ("sm80", "mma", {"MMA": "mma_m16n8k8_tf32", "D_TYPE": "float", "D_WORDS": 4, "A_WORDS": 4}),
    ("sm90a", "store_matrices", {"MATRICES": 4}),
    ("sm90a", "copy_box", {"RANK": 5, "ADDS": 1}),
    ("sm90a", "copy_bytes", {"BYTES": 1}),
    ("sm100a", "copy_box", {"RANK": 3, "ADDS": 1}),
    ("sm120a", "store_matrices", {"MATRICES": 1}),
    ("sm90a", "wgmma", {"COLUMNS": 64, "WGMMA": "wgmma_f16_ss", "A_MAJOR": "MN", "B_MAJOR": "MN"}),
    ("sm90a", "wgmma", {"COLUMNS": 96, "WGMMA": "wgmma_bf16_rs", "B_MAJOR": "MN", "FROM_REGISTERS": 1}),
]


@pytest.mark.parametrize(("arch", "kernel", "defines"), COMPILED)
def test_a_wrapper_compiles_for_its_gpu(arch: str, kernel: str, defines: dict[str, int | str]) -> None:
    defaults: dict[str, int | str] = {"A_WORDS": 2, "B_WORDS": 2}
    compile_source(KERNELS.read_text(), KERNELS.name, arch, tuple((defaults | defines).items()), kernel=kernel)
