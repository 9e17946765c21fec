"""Decoded instructions against nvdisasm's own words, on real kernels of every architecture."""

import re
import subprocess
from pathlib import Path

import pytest

from microbench import sass
from microbench.compile import Cubin, compile_source
from microbench.errors import EnvironmentLacks, InputError
from microbench.machine.arch import by_name
from microbench.sass.instruction import Control

ARCHS = ("sm70", "sm75", "sm80", "sm89", "sm90a", "sm100a", "sm120a")

# Something of everything: wide loads and stores, doubles, conversions, atomics, shuffles, votes, shared memory, calls.
MIXED = """
extern "C" __global__ void mixed(float* f, double* d, unsigned* u, unsigned long long* q) {
  __shared__ float tile[1024];
  int t = threadIdx.x;
  float4 v = *reinterpret_cast<float4*>(f + 4 * t);
  *reinterpret_cast<float4*>(f + 4096 + 4 * t) = make_float4(v.w, v.z, v.y, v.x);
  tile[t] = v.x; __syncthreads();
  f[t] = tile[u[t] & 1023] + sinf(v.y) + rsqrtf(v.z) * v.w;
  d[t] = d[t] * d[t + 1] + (double)v.x; u[t + 1] = (unsigned)d[t + 7]; q[t] = (long long)v.y;
  q[t + 5] = q[t + 1] * q[t + 2] + q[5]; q[t + 9] = q[t + 3] << u[2]; f[t + 11] = (float)q[7];
  u[t + 9] = atomicAdd(u + 7, u[t]); atomicAdd(f + 9, v.x); u[t + 6] = atomicCAS(u + 9, 3u, 7u);
  f[t + 64] = __shfl_xor_sync(~0u, v.x, 3); u[t + 77] = __ballot_sync(~0u, u[t] & 1); u[t + 5] = __umulhi(u[0], u[1]);
  unsigned a[4] = {u[1], u[2], u[3], u[4]}; float c[4] = {v.x, v.y, v.z, v.w};
#if __CUDA_ARCH__ >= 800
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%4,%6},{%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]));
#endif
  f[t + 99] = c[0] + c[1] * c[2] / c[3]; u[t + 3] = a[0] / a[1] + __popc(a[2]);
}
"""


def mixed(arch: str) -> Cubin:
    return compile_source(MIXED, "mixed.cu", arch, kernel="mixed")


def disassembled_alone(code: bytes, arch: str, folder: Path) -> list[str]:
    """The words of each line as nvdisasm prints them of one kernel at address 0."""
    raw = folder / "kernel.bin"
    raw.write_bytes(code)
    target = {"sm70": "SM75"}.get(arch, arch.upper().replace("A", "a"))
    command = [sass._nvdisasm(), "-ndf", "-b", target, str(raw)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [" ".join(line.split()) for line in printed.splitlines() if line.strip().startswith("/*")]


@pytest.mark.parametrize("arch", ARCHS)
def test_kernels_disassembled_together_read_as_each_does_alone(arch: str, tmp_path: Path) -> None:
    cubin = mixed(arch)
    other = compile_source(MIXED.replace("__popc(a[2])", "a[3]"), "m.cu", arch, kernel="mixed")
    codes = [sass.cubin.text(image, "mixed").code for image in (cubin.image, other.image, cubin.image)]
    together = sass.disassemble_all(codes, by_name(arch))
    for code, listing in zip(codes, together, strict=True):
        lines = [" ".join(line.split()) for line in listing.splitlines()]
        assert lines == disassembled_alone(code, arch, tmp_path)
    # Branches, calls, returns and convergence barriers are where an address is printed.
    heads = {i.head for i in sass.parse(cubin.image, "mixed", together[2]) if "0x" in i.text}
    assert {"BRA", "CALL", "RET", "BSSY"} <= heads
    assert sass.disassemble_all((), by_name(arch)) == ()


@pytest.mark.parametrize("arch", ARCHS)
def test_reuse_bits_are_the_reuse_words_of_nvdisasm(arch: str) -> None:
    decoded = mixed(arch).instructions()
    assert sum(".reuse" in i.text for i in decoded) > 5
    for instruction in decoded:
        assert instruction.control.reuse.bit_count() == instruction.text.count(".reuse"), instruction.text


@pytest.mark.parametrize("arch", ARCHS)
def test_control_bits_are_what_a_schedule_can_be(arch: str) -> None:
    for instruction in mixed(arch).instructions():
        control = instruction.control
        assert control.stall <= 11 or (control.yield_ is not None and (instruction.word >> 109 & 1) == 0), (
            instruction.text
        )
        assert control.sets <= set(range(6)), instruction.text
        if instruction.head in ("LDG", "LDS", "MUFU"):
            assert control.write_barrier is not None or instruction.predicate == "!PT", instruction.text


def liveness(cubin: Cubin, folder: Path) -> dict[int, tuple[set[str], set[str]]]:
    """(written, read) by address, from the life-range columns that nvdisasm prints: ^ written, v read, x both."""
    image = folder / "image.cubin"
    image.write_bytes(cubin.image)
    command = [sass._nvdisasm(), "-plr", "-lrm", "narrow", "-c", str(image)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    files = {"GPR": "R", "PRED": "P", "UGPR": "UR", "UPRED": "UP"}
    columns: list[tuple[str, int]] = []
    names: list[str] = []
    rows: dict[int, tuple[set[str], set[str]]] = {}
    for line in printed.splitlines():
        code, mark, table = line.partition("// |")
        segments = table.split("|") if mark else []
        if "GPR" in table:
            names = [segment.strip() for segment in segments]
        elif "#" in table:
            columns = [(files.get(name, ""), s.find("#") + 2) for name, s in zip(names, segments, strict=True)]
        elif address := re.match(r"\s*/\*([0-9a-f]+)\*/", code):
            written, read = rows.setdefault(int(address[1], 16), (set(), set()))
            for (file, start), segment in zip(columns, segments, strict=True):
                for number, sign in enumerate(segment[start:] if file else ""):
                    written.update({f"{file}{number}"} if sign in "^x" else ())
                    read.update({f"{file}{number}"} if sign in "vx" else ())
    return rows


@pytest.mark.parametrize("arch", ["sm100a", "sm120a"])
def test_registers_written_and_read_are_those_of_nvdisasms_life_ranges(arch: str, tmp_path: Path) -> None:
    cubin = mixed(arch)
    rows = liveness(cubin, tmp_path)
    decoded = {i.address: i for i in cubin.instructions()}
    compared = [
        i for address, i in decoded.items() if address in rows and i.head != "CALL"
    ]  # a call's are its callee's
    assert len(compared) > 200
    for instruction in compared:
        assert (instruction.writes, instruction.reads) == rows[instruction.address], instruction.text


@pytest.mark.parametrize("arch", ARCHS)
def test_patching_a_stall_changes_that_field_and_nothing_else(arch: str) -> None:
    cubin = mixed(arch)
    before = cubin.instructions()
    after = sass.decode(sass.patch_stall(cubin.image, "mixed", 7, 3), "mixed", by_name(arch))
    assert after[7].control.stall == 3 and after[7].word ^ before[7].word == (3 ^ before[7].control.stall) << 105
    assert after[:7] + after[8:] == before[:7] + before[8:] and Control.of(before[7].word) == before[7].control


@pytest.mark.parametrize(("index", "stall"), [(-1, 1), (10**6, 1), (0, 16), (0, -1)])
def test_a_stall_that_cannot_be_patched_is_refused(index: int, stall: int) -> None:
    with pytest.raises(InputError):
        sass.patch_stall(mixed("sm80").image, "mixed", index, stall)


def test_a_missing_nvdisasm_names_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    image = mixed("sm80").image
    monkeypatch.setattr("microbench.machine.toolkit.wheel_files", lambda *_: iter(()))
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    sass._nvdisasm.cache_clear()
    with pytest.raises(EnvironmentLacks, match="pip install nvidia-cuda-nvdisasm"):
        sass.decode(image, "mixed", by_name("sm80"))
