"""What ptxas makes of ptx/clock.cuh, on every architecture."""

import pytest

from microbench import sass
from microbench.compile import Cubin, compile_source
from microbench.machine.arch import CUDA, by_name
from microbench.probe import OpCount, Overhead, SassContract

KERNEL = """
#include "ptx/clock.cuh"
extern "C" __global__ void timed(const T* in, T* out, long long* cycles) {
  T x = in[threadIdx.x], y = in[threadIdx.x + 32];
  %s
  long long start = ptx::clock64();
  asm volatile(OP : "+" C(x) : C(y));
  %s
  long long stop = ptx::clock64();
  out[threadIdx.x] = x;
  cycles[threadIdx.x] = stop - start;
}
"""
TYPES = {
    "float": ("f", "add.rn.f32 %0, %0, %1;", "FADD"),
    "int": ("r", "mad.lo.s32 %0, %0, %1, %1;", "IMAD"),
    "double": ("d", "add.rn.f64 %0, %0, %1;", "DADD"),
    "long long": ("l", "", ""),
}


def timed(arch: str, type_: str, before: str, after: str = "") -> Cubin:
    constraint, op, _ = TYPES[type_]
    source = f'#define T {type_}\n#define C "{constraint}"\n#define OP "{op}"\n' + KERNEL % (before, after)
    return compile_source(source, "timed.cu", arch, kernel="timed")


def check(cubin: Cubin, contract: SassContract) -> tuple[str, ...]:
    return sass.check(contract, cubin.instructions(), by_name(cubin.arch), cubin.resources)


@pytest.mark.parametrize("arch", CUDA)
@pytest.mark.parametrize("type_", TYPES)
def test_settled_operands_leave_only_the_timed_op_between_the_clocks(arch: str, type_: str) -> None:
    op = TYPES[type_][2]
    contract = SassContract((OpCount(op, 1),) if op else ())
    assert check(timed(arch, type_, "ptx::settle(x, y);"), contract) == ()


@pytest.mark.parametrize("arch", CUDA)
def test_without_settle_the_wait_for_the_load_is_found(arch: str) -> None:
    assert "waits for scoreboard" in check(timed(arch, "float", ""), SassContract((OpCount("FADD", 1),)))[0]


@pytest.mark.parametrize("arch", CUDA)
def test_settle_at_the_end_costs_a_compare_and_a_trigger(arch: str) -> None:
    cubin = timed(arch, "float", "ptx::settle(x, y);", "ptx::settle(x);")
    contract = SassContract((OpCount("FADD", 1),), overhead=(Overhead(("ISETP", "PMTRIG"), 2, 2),))
    assert check(cubin, contract) == ()


@pytest.mark.parametrize("arch", CUDA)
def test_globaltimer_and_smid_become_one_special_register_read_each(arch: str) -> None:
    source = """#include "ptx/clock.cuh"
    extern "C" __global__ void where(unsigned long long* ns, unsigned* sm) {
      ns[threadIdx.x] = ptx::globaltimer();
      sm[threadIdx.x] = ptx::smid();
    }"""
    texts = [i.text for i in compile_source(source, "where.cu", arch, kernel="where").instructions()]
    assert sum("SR_GLOBALTIMERLO" in text and text.startswith("CS2") for text in texts) == 1
    assert sum("SR_VIRTUALSMID" in text for text in texts) == 1
