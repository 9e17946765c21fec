"""The wrappers that a GPU is held against the emulator by compile for the GPUs that have them."""

import pytest

from microbench.compile import compile_all, compile_source
from microbench.errors import BuildError
from microbench.verify.differential.case import KERNELS
from microbench.verify.differential.catalogue import cases, rooms

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


@pytest.mark.parametrize(
    ("arch", "refused"), [("sm70", {"ldmatrix", "stmatrix"}), ("sm80", {"stmatrix"}), ("sm90a", set())]
)
def test_a_gpu_is_given_the_wrappers_that_its_architecture_has(arch: str, refused: set[str]) -> None:
    matrices = [cases()[number] for number in rooms()["matrices"]]
    made = compile_all([case.source_for(arch) for case in matrices])
    assert {case.wrapper for case, each in zip(matrices, made, strict=True) if isinstance(each, BuildError)} == refused


@pytest.mark.parametrize(("arch", "has"), [("sm100a", True), ("sm90a", False)])
def test_tensor_memory_is_blackwell_s(arch: str, has: bool) -> None:
    every = [cases()[number] for number in rooms()["tensor_memory"]]
    first = {case.kernel: case for case in reversed(every)}
    made = compile_all([case.source_for(arch) for case in first.values()])
    assert len(made) == 3 and [not isinstance(each, BuildError) for each in made] == [has] * 3
