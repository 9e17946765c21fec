"""Which instruction each wrapper of a number format becomes, on every architecture that has it."""

from collections import Counter

import pytest

from microbench.compile import Cubin, Source, compile_all, compile_source
from microbench.machine.arch import by_name
from microbench.verify.differential import number_formats
from microbench.verify.differential.number_formats import MMA, WGMMA, Wrapper
from tests.emulated import formats
from tests.emulated.sources import source_of

HALVES = tuple(each for each in MMA if each.per_word < 4)
INTEGERS = tuple(each for each in MMA if each.sums == "s32")
FP8 = tuple(each for each in MMA if each.a in ("e4m3", "e5m2"))
# fp8 is no tensor instruction of mma.sync there: two of f16 after an unpacking.
UNPACKED = ("sm90a", "sm100a", "sm103a")
TENSOR = ("HMMA", "IMMA", "QMMA", "OMMA")


def has(arch: str) -> tuple[Wrapper, ...]:
    """The wrappers of mma.sync that an architecture compiles."""
    if arch == "sm75":
        return tuple(each for each in HALVES if each.a == "f16" and each.k == 8)
    return MMA if "fp8" in by_name(arch).features else HALVES + INTEGERS


def signature(wrapper: Wrapper, arch: str) -> Counter[str]:
    """The tensor instructions of one call."""
    a, b, sums, shape = wrapper.a.upper(), wrapper.b.upper(), wrapper.sums.upper(), f"168{wrapper.k}"
    if wrapper.sums == "s32":
        return Counter([f"IMMA.{shape}.{a}.{b}{'.SAT' if wrapper.saturates else ''}"])
    if wrapper in FP8 and arch in UNPACKED:
        return Counter([f"HMMA.168{wrapper.k // 2}.{sums}"] * 2)
    if wrapper in FP8:
        return Counter([f"QMMA.{shape}.{sums}.{a}.{b}"])
    return Counter([f"HMMA.{shape}.{sums}" + ("" if wrapper.a == "f16" else f".{a}")])


def tensor_instructions(cubin: Cubin) -> Counter[str]:
    opcodes = (instruction.opcode for instruction in cubin.instructions())
    return Counter(opcode for opcode in opcodes if opcode.split(".")[0] in TENSOR)


@pytest.mark.parametrize("arch", ["sm75", "sm80", "sm86", "sm89", "sm90a", "sm100a", "sm103a", "sm120a"])
def test_mma_sync_becomes_the_instruction_of_its_format(arch: str) -> None:
    wrappers = has(arch)
    cubin = compile_source(formats.SOURCE, formats.NAME, arch, number_formats.mma_defines(wrappers), kernel="mma")
    expected: Counter[str] = sum((signature(each, arch) for each in wrappers), Counter())
    assert tensor_instructions(cubin) == expected
    assert bool([i.opcode for i in cubin.instructions() if i.opcode.startswith("F2FP.F16.E")]) == (arch in UNPACKED)


def wgmma_signature(wrapper: Wrapper, columns: int) -> str:
    a, b, shape = wrapper.a.upper(), wrapper.b.upper(), f"64x{columns}x{wrapper.k}"
    if wrapper.sums == "s32":
        return f"IGMMA.{shape}.{a}.{b}{'.SAT' if wrapper.saturates else ''}"
    if wrapper.per_word == 4:
        return f"QGMMA.{shape}.F32.{a}.{b}"
    return f"HGMMA.{shape}.F32" + ("" if wrapper.a == "f16" else f".{a}")


def compiled_sizes(wrappers: tuple[Wrapper, ...], columns: tuple[int, ...] | None) -> None:
    """Each size once from shared memory and once from registers, and nothing that ptxas had to mend."""
    sources = [
        Source(formats.SOURCE, formats.NAME, by_name("sm90a"), "wgmma", number_formats.wgmma_defines(each, columns))
        for each in wrappers
    ]
    for wrapper, cubin in zip(wrappers, compile_all(tuple(sources)), strict=True):
        assert isinstance(cubin, Cubin), cubin
        sizes = columns or number_formats.columns_of(wrapper)
        # ptxas closes each group from registers with an HGMMA of no operands.
        real = [i for i in cubin.instructions() if "GMMA." in i.opcode and "gdesc[URZ]" not in i.text]
        expected = Counter({wgmma_signature(wrapper, n): 2 for n in sizes})
        assert Counter(i.opcode for i in real) == expected
        # C7519, an arrive injected where two branches meet, changes nothing.
        assert {*cubin.notes} <= {"C7519"}


def test_wgmma_becomes_the_instruction_of_its_format() -> None:
    compiled_sizes(WGMMA, (8, 24, 112))


@pytest.mark.slow
@pytest.mark.parametrize("wrapper", WGMMA, ids=lambda wrapper: wrapper.name)
def test_every_n_of_wgmma_compiles(wrapper: Wrapper) -> None:
    compiled_sizes((wrapper,), None)


ARITHMETIC = {
    "ptx::tanh(fx)": {"sm75": ["MUFU.TANH"], "sm90a": ["MUFU.TANH"]},
    "ptx::tanh_f16x2(x)": {"sm75": ["MUFU.TANH.F16"] * 2, "sm100a": ["MUFU.TANH.F16"] * 2},
    "ptx::tanh_bf16x2(x)": {"sm90a": ["MUFU.TANH.BF16"] * 2},
    "ptx::ex2_f16x2(x)": {"sm75": ["MUFU.EX2.F16"] * 2, "sm90a": ["MUFU.EX2.F16"] * 2},
    "ptx::ex2_bf16x2(x)": {"sm90a": ["MUFU.EX2.BF16"] * 2},
    "ptx::ffma2({fx, fy}, {fz, fx}, {fy, fz})": {
        "sm70": ["FFMA"] * 2,
        "sm90a": ["FFMA"] * 2,
        "sm100a": ["FFMA2"],
        "sm103a": ["FFMA2"],
        "sm120a": ["FFMA"] * 2,
    },
    "ptx::fadd2({fx, fy}, {fz, fx})": {"sm90a": ["FADD"] * 2, "sm100a": ["FADD2"], "sm120a": ["FADD"] * 2},
    "ptx::fmul2({fx, fy}, {fz, fx})": {"sm90a": ["FMUL"] * 2, "sm100a": ["FMUL2"], "sm120a": ["FMUL"] * 2},
    "ptx::fmax3(fx, fy, fz)": {"sm90a": ["FMNMX"] * 2, "sm100a": ["FMNMX3"], "sm120a": ["FMNMX"] * 2},
    "ptx::fmin3(fx, fy, fz)": {"sm70": ["FMNMX"] * 2, "sm103a": ["FMNMX3"]},
    "ptx::redux_add(x)": {"sm80": ["REDUX.SUM"], "sm90a": ["REDUX.SUM"], "sm100a": ["REDUX.SUM"]},
    "ptx::redux_max(int(x))": {"sm80": ["REDUX.MAX.S32"], "sm100a": ["CREDUX.MAX.S32"]},
    "ptx::redux_max(fx)": {"sm90a": ["SHFL.BFLY", "FMNMX"] * 5, "sm100a": ["CREDUX.MAX.F32"]},
    "ptx::prmt(x, y, z)": {"sm70": ["PRMT"], "sm120a": ["PRMT"]},
    "ptx::lop3<0xE8>(x, y, z)": {"sm70": ["LOP3.LUT"], "sm100a": ["LOP3.LUT"]},
    "ptx::pack_e4m3(fx, fy)": {"sm89": ["F2FP.SATFINITE.E4M3.F32.PACK_AB_MERGE_C", "LOP3.LUT"]},
    "ptx::f16x2_to_e5m2(x)": {"sm90a": ["F2FP.SATFINITE.E5M2.F16.UNPACK_B_MERGE_C", "LOP3.LUT"]},
    "ptx::e4m3_to_f16x2((unsigned short)x)": {"sm89": ["F2FP.F16.E4M3.UNPACK_B"], "sm100a": ["F2FP.F16.E4M3.UNPACK_B"]},
}
NAMED = ("MUFU", "FFMA", "FFMA2", "FADD", "FADD2", "FMUL", "FMUL2", "FMNMX", "FMNMX3", "REDUX", "CREDUX", "SHFL.BFLY")


@pytest.mark.parametrize("call", ARITHMETIC)
def test_a_small_instruction_is_one_instruction_where_the_gpu_has_it(call: str) -> None:
    text, name = source_of("arithmetic.cu")
    wanted = ARITHMETIC[call]
    defines = (("CALLS", f"OUT({call})"), ("ROWS", 2))
    sources = tuple(Source(text, name, by_name(arch), "arithmetic", defines) for arch in wanted)
    for arch, cubin in zip(wanted, compile_all(sources), strict=True):
        assert isinstance(cubin, Cubin), cubin
        opcodes = [instruction.opcode for instruction in cubin.instructions()]
        families = NAMED + ("PRMT", "LOP3", "F2FP") * (wanted[arch][0].split(".")[0] in ("PRMT", "LOP3", "F2FP"))
        assert [opcode for opcode in opcodes if opcode.startswith(families)] == wanted[arch], arch
