"""What an architecture lacks stays refused, in the same words that another architecture compiles."""

import pytest

from microbench.compile import Cubin, Source, compile_all
from microbench.errors import BuildError
from microbench.machine.arch import Arch, by_name

# The plain target is no row of arch.py: nobody would compile for it, as it lacks what makes Hopper.
HOPPER_WITHOUT_A = Arch("sm90", "Hopper", (9, 0), frozenset({"cuda"}))

MMA_BF16 = (
    "{.reg .b32 r; .reg .f32 d; mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
    "{d,d,d,d}, {r,r,r,r}, {r,r}, {d,d,d,d};}"
)
MMA_FP8 = MMA_BF16.replace("m16n8k16", "m16n8k32").replace("bf16.bf16", "e4m3.e4m3")
MMA_S8 = (
    "{.reg .b32 r; mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32 {r,r,r,r}, {r,r,r,r}, {r,r}, {r,r,r,r};}"
)
MMA_F16_SUMS = "{.reg .b32 r; mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {r,r}, {r,r,r,r}, {r,r}, {r,r};}"
MMA_K8 = "{.reg .b32 r; mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {r,r}, {r,r}, {r}, {r,r};}"
MMA_TF32 = (
    "{.reg .b32 r; .reg .f32 d; mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {d,d,d,d}, {r,r}, {r}, {d,d,d,d};}"
)


def wgmma(kind: str, sums: str, signs: str) -> str:
    return (
        f"{{.reg .b64 x; .reg .b32 d; .reg .pred p; wgmma.mma_async.sync.aligned.m64n8k32.{sums}.{kind}.{kind} "
        f"{{d,d,d,d}}, x, x, p{signs};}}"
    )


# PTX, an architecture that has it, and those that must not.
CASES = {
    "wgmma": ("wgmma.fence.sync.aligned;", "sm90a", ("sm80", "sm90", "sm100a", "sm120a")),
    "setmaxnreg": ("setmaxnreg.dec.sync.aligned.u32 40;", "sm90a", ("sm89", "sm90")),
    "tcgen05": ("tcgen05.wait::ld.sync.aligned;", "sm100a", ("sm90a", "sm120a")),
    "cp.async": ("cp.async.wait_all;", "sm80", ("sm70", "sm75")),
    "bf16 mma": (MMA_BF16, "sm80", ("sm70", "sm75")),
    "fp8 mma": (MMA_FP8, "sm89", ("sm80", "sm86")),
    "ldmatrix": ("{.reg .b32 r, p; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {r}, [p];}", "sm75", ("sm70",)),
    "bulk copy": ("cp.async.bulk.commit_group;", "sm90a", ("sm80", "sm89")),
    "cluster": ("barrier.cluster.arrive.aligned;", "sm90a", ("sm80", "sm89")),
    "int8 mma": (MMA_S8, "sm80", ("sm70", "sm75")),
    "f16 sums": (MMA_F16_SUMS, "sm80", ("sm70", "sm75")),
    "m16n8k8": (MMA_K8, "sm75", ("sm70",)),
    "tf32 mma": (MMA_TF32, "sm80", ("sm70", "sm75")),
    "fp8 wgmma": (wgmma("e4m3", "f32", ", 1, 1"), "sm90a", ("sm89", "sm90", "sm100a", "sm120a")),
    "int8 wgmma": (wgmma("s8", "s32", ""), "sm90a", ("sm80", "sm90", "sm100a", "sm120a")),
    "fp8 conversion": ("{.reg .b16 h; .reg .f32 f; cvt.rn.satfinite.e4m3x2.f32 h, f, f;}", "sm89", ("sm80", "sm86")),
    "tanh": ("{.reg .f32 f; tanh.approx.f32 f, f;}", "sm75", ("sm70",)),
    "tanh of bf16": ("{.reg .b32 r; tanh.approx.bf16x2 r, r;}", "sm90a", ("sm80", "sm89")),
    "ex2 of bf16": ("{.reg .b32 r; ex2.approx.ftz.bf16x2 r, r;}", "sm90a", ("sm75", "sm89")),
    "redux": ("{.reg .b32 r; redux.sync.add.u32 r, r, -1;}", "sm80", ("sm70", "sm75")),
    "redux of f32": ("{.reg .f32 f; redux.sync.max.f32 f, f, -1;}", "sm100a", ("sm90a", "sm120a")),
    "max of three": ("{.reg .f32 f; max.f32 f, f, f, f;}", "sm100a", ("sm89", "sm90a")),
    "mapa": ("{.reg .b32 r; mapa.shared::cluster.u32 r, r, r;}", "sm90a", ("sm80", "sm89")),
    "multicast": (
        "{.reg .b32 r; .reg .b64 g; .reg .b16 m; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".multicast::cluster [r], [g], r, [r], m;}",
        "sm90a",
        ("sm80", "sm89"),
    ),
    "st.async": (
        "{.reg .b32 r; st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [r], r, [r];}",
        "sm90a",
        ("sm80", "sm89"),
    ),
    "elect": ("{.reg .pred p; elect.sync _|p, -1;}", "sm90a", ("sm80", "sm89")),
    "dependent grid": ("griddepcontrol.wait;", "sm90a", ("sm80", "sm89")),
    "packed f32x2": ("{.reg .b64 x; add.rn.f32x2 x, x, x;}", "sm100a", ("sm89", "sm90a")),
}


def compiled(ptx: str, arch: str) -> object:
    text = f'extern "C" __global__ void __launch_bounds__(128, 1) k() {{ asm volatile("{ptx}"); }}'
    target = HOPPER_WITHOUT_A if arch == "sm90" else by_name(arch)
    (made,) = compile_all((Source(text, "k.cu", target, "k"),))
    return made


@pytest.mark.parametrize("case", CASES)
def test_the_instruction_compiles_where_it_exists(case: str) -> None:
    ptx, home, _ = CASES[case]
    assert isinstance(made := compiled(ptx, home), Cubin), made


@pytest.mark.parametrize(("case", "arch"), [(case, arch) for case, (*_, lacking) in CASES.items() for arch in lacking])
def test_the_instruction_is_refused_where_it_does_not(case: str, arch: str) -> None:
    error = compiled(CASES[case][0], arch)
    assert isinstance(error, BuildError), f"{case} compiles for {arch}"
    assert f"does not build k.cu for {arch}: " in str(error) and "error" in str(error).lower()
    # Refused for want of the feature, and not for a slip in the PTX.
    assert any(words in error.__notes__[0] for words in ("not supported on .target", "requires .target sm_")), error
