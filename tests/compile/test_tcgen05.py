"""Every tcgen05 wrapper becomes the one instruction it names, with one block and with a pair of blocks."""

import pytest

from microbench.compile import compile_source
from microbench.errors import BuildError

# Each wrapper in its own kernel; `a` is a matrix descriptor, `t` an address of tensor memory, `s` one of shared memory.
HEAD = """
#include "ptx/memory.cuh"
#include "ptx/tcgen05.cuh"
extern "C" __global__ void k(unsigned* out, unsigned long long a, unsigned t, unsigned i) {
  const unsigned s = ptx::shared_base();
"""

ONE_THREAD = {
    "tcgen05_mma_f16_ss<GROUP>(t, a, a, i, 1)": "UTCHMMA",
    "tcgen05_mma_f16_ts<GROUP>(t, t + 64, a, i, 1)": "UTCHMMA",
    "tcgen05_mma_f8_ss<GROUP>(t, a, a, i, 1)": "UTCQMMA",
    "tcgen05_mma_f8_ts<GROUP>(t, t + 64, a, i, 1)": "UTCQMMA",
    "tcgen05_mma_tf32_ss<GROUP>(t, a, a, i, 1)": "UTCHMMA",
    "tcgen05_mma_tf32_ts<GROUP>(t, t + 64, a, i, 1)": "UTCHMMA",
    "tcgen05_mma_i8_ss<GROUP>(t, a, a, i, 1)": "UTCIMMA",
    "tcgen05_mma_i8_ts<GROUP>(t, t + 64, a, i, 1)": "UTCIMMA",
    "tcgen05_mma_mxf8_ss<GROUP>(t, a, a, i, t + 320, t + 324, 1)": "UTCQMMA",
    "tcgen05_mma_mxf8_ts<GROUP>(t, t + 64, a, i, t + 320, t + 324, 1)": "UTCQMMA",
    "tcgen05_mma_mxf4_ss<GROUP>(t, a, a, i, t + 320, t + 324, 1)": "UTCOMMA",
    "tcgen05_mma_mxf4_ts<GROUP>(t, t + 64, a, i, t + 320, t + 324, 1)": "UTCOMMA",
    "tcgen05_mma_nvf4_ss<GROUP>(t, a, a, i, t + 320, t + 324, 1)": "UTCOMMA.4X",
    "tcgen05_mma_nvf4_ts<GROUP>(t, t + 64, a, i, t + 320, t + 324, 1)": "UTCOMMA.4X",
    "tcgen05_cp_128x256b<GROUP>(t, a)": "UTCCP.T.S",
    "tcgen05_cp_128x128b<GROUP>(t, a)": "UTCCP.T.S.128dp128bit",
    "tcgen05_cp_64x128b_02_13<GROUP>(t, a)": "UTCCP.T.S.2x64dp128bit_lw02_lw13",
    "tcgen05_cp_64x128b_01_23<GROUP>(t, a)": "UTCCP.T.S.2x64dp128bit_lw01_lw23",
    "tcgen05_cp_32x128b<GROUP>(t, a)": "UTCCP.T.S.4x32dp128bit",
    "tcgen05_commit<GROUP>(s)": "UTCBAR",
    "tcgen05_commit_multicast<GROUP>(s, 3)": "UTCBAR.MULTICAST",
    "tcgen05_alloc<GROUP>(s, 128)": "UTCATOMSWS.FIND_AND_SET.ALIGN",
    "tcgen05_dealloc<GROUP>(t, 128)": "UTCATOMSWS.AND",
}
SHAPES = {"32x32b": ("", 1), "16x64b": (".16dp64bit", 1), "16x128b": (".16dp128bit", 2), "16x256b": (".16dp256bit", 4)}


def opcodes(body: str, group: int = 1, arch: str = "sm100a") -> list[str]:
    cubin = compile_source(f"{HEAD} {body} }}", "k.cu", arch, (("GROUP", group),), kernel="k")
    return [instruction.opcode for instruction in cubin.instructions()]


@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("call", ONE_THREAD)
def test_a_wrapper_is_one_instruction(call: str, group: int) -> None:
    name, *modifiers = ONE_THREAD[call].split(".")
    found = [opcode for opcode in opcodes(f"ptx::{call};", group) if opcode.split(".")[0] == name]
    wanted = [opcode for opcode in found if set(modifiers) <= set(opcode.split("."))]
    # ptxas makes alloc a first try and a loop.
    assert len(wanted) == (2 if "FIND_AND_SET" in modifiers else 1), found
    if name != "UTCATOMSWS" or "FIND_AND_SET" in modifiers:
        assert ("2CTA" in wanted[0].split(".")) == (group == 2), wanted


@pytest.mark.parametrize("shape", SHAPES)
def test_a_move_names_its_shape_and_its_registers(shape: str) -> None:
    modifier, least = SHAPES[shape]
    counts = [1 << n for n in range(8) if 1 << n >= least]
    body = "".join(
        f"""{{ unsigned r[{count}];
          ptx::tcgen05_ld_{shape}(r, t); ptx::tcgen05_wait_ld();
          for (int j = 0; j < {count}; ++j) r[j] += i;
          ptx::tcgen05_st_{shape}(t, r); ptx::tcgen05_wait_st(); }}"""
        for count in counts
    )
    times = [f"{modifier}.x{count // least}" if count > least else modifier for count in counts]
    moves = [opcode for opcode in opcodes(body) if opcode.startswith(("LDTM", "STTM"))]
    assert moves == [name + each for each in times for name in ("LDTM", "STTM")]


def test_a_move_of_halves_is_one_of_the_lower_threads_and_one_of_the_upper() -> None:
    """ptxas lays the split on the upper threads' address, in columns: as the emulator has it."""
    body = """unsigned r[8];
      ptx::tcgen05_ld_16x32bx2<40>(r, t); ptx::tcgen05_wait_ld();
      for (int j = 0; j < 8; ++j) r[j] += i;
      ptx::tcgen05_st_16x32bx2<9>(t, r); ptx::tcgen05_wait_st();"""
    cubin = compile_source(f"{HEAD} {body} }}", "k.cu", "sm100a", (("GROUP", 1),), kernel="k")
    moves = [each for each in cubin.instructions() if each.opcode.startswith(("LDTM", "STTM"))]
    assert [each.opcode for each in moves] == [
        f"{name}.16dp32bit_{threads}.x8" for name in ("LDTM", "STTM") for threads in ("t0_t15", "t16_t31")
    ]
    where = [next(operand for operand in each.operands if operand.startswith("tmem")) for each in moves]
    base = where[0].rstrip("]")
    assert where[1::2] == [f"{base}+{hex(40)}]", f"{where[2].rstrip(']')}+{hex(9)}]"]


def test_the_wrappers_compile_for_sm103a_too_but_for_integers() -> None:
    body = "".join(f"ptx::{call};" for call in ONE_THREAD if "_i8_" not in call)
    body += "unsigned r[32]; ptx::tcgen05_ld_32x32b(r, t); ptx::tcgen05_wait_ld(); ptx::tcgen05_st_16x256b(t, r);"
    body += "ptx::tcgen05_ld_16x32bx2<32>(r, t); ptx::tcgen05_wait_ld(); ptx::tcgen05_st_16x32bx2<32>(t, r);"
    assert {"UTCHMMA", "UTCQMMA", "UTCOMMA", "UTCBAR", "LDTM"} <= {
        each.split(".")[0] for each in opcodes(body, arch="sm103a")
    }
    with pytest.raises(BuildError, match=r"kind::i8' not supported on \.target 'sm_103a'"):
        opcodes("ptx::tcgen05_mma_i8_ss<GROUP>(t, a, a, i, 1);", arch="sm103a")


def test_waits_and_fences_compile_and_hopper_refuses_them() -> None:
    for call in ("fence_before()", "fence_after()", "relinquish<GROUP>()", "wait_ld()", "wait_st()"):
        assert opcodes(f"ptx::tcgen05_{call};")
        with pytest.raises(BuildError, match=r"does not build k\.cu for sm90a"):
            opcodes(f"ptx::tcgen05_{call};", arch="sm90a")
