"""Source to cubin: what is kept, what is refused, and that the cache can be trusted."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from microbench import compile as build
from microbench import paths, sass
from microbench.compile import Cubin, Source, compile_all, compile_probe, compile_source, nvrtc
from microbench.errors import BuildError, DataError, EnvironmentLacks
from microbench.machine.arch import by_name
from microbench.probe import Build, OpCount, Probe, SassContract

ADD = 'extern "C" __global__ void add(float* x) { x[threadIdx.x] += N; }'
ARCHS = ("sm70", "sm80", "sm90a", "sm100a")


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(paths.CACHE_VARIABLE, str(tmp_path))
    return tmp_path / "cubin"


def add(arch: str = "sm90a", n: int = 2) -> Cubin:
    return compile_source(ADD, "add.cu", arch, (("N", n),), kernel="add")


def forget_the_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> Iterator[nvrtc.Candidate]:
        return iter(())

    def nowhere() -> str:
        raise EnvironmentLacks("no nvdisasm")

    monkeypatch.setattr(nvrtc, "candidates", none)
    monkeypatch.setattr(sass, "_nvdisasm", nowhere)


@pytest.mark.parametrize("arch", ARCHS)
def test_a_cubin_says_what_it_is(arch):
    cubin = add(arch)
    assert (cubin.arch, cubin.kernel, cubin.flags[0]) == (arch, "add", f"-arch={by_name(arch).nvrtc}")
    assert cubin.path.read_bytes() == cubin.image
    assert not {"-ftz=true", "--use_fast_math", "-lineinfo"} & set(cubin.flags)
    assert cubin.resources.code_bytes == 16 * len(cubin.instructions())
    assert cubin.instructions() == sass.decode(cubin.image, "add", by_name(arch))


@pytest.mark.parametrize("arch", ARCHS)
def test_shared_memory_barriers_stack_and_spills_are_counted(arch):
    source = """extern "C" __global__ void __launch_bounds__(1024, 2) greedy(float* x, int n) {
      __shared__ float tile[1024]; float v[64], kept[16];
      for (int i = 0; i < 64; i++) v[i] = x[threadIdx.x + 1024 * i];
      for (int i = 0; i < 16; i++) kept[(i * n) & 15] = v[i];
      tile[threadIdx.x] = kept[n & 15]; __syncthreads();
      for (int i = 0; i < 64; i++) x[threadIdx.x + 1024 * i] = v[i] * v[63 - i] + tile[(threadIdx.x + i) & 1023];
    }"""
    used = compile_source(source, "greedy.cu", arch, kernel="greedy").resources
    assert used.smem_bytes == 4096 and used.barriers == 1 and used.local_bytes >= 64 and used.spills
    assert used.registers == 65536 // 2048  # what its launch bounds leave to a thread


def test_a_hit_needs_neither_nvrtc_nor_nvdisasm(empty_cache, monkeypatch):
    first = add()
    forget_the_tools(monkeypatch)
    again = add()
    assert (first.from_cache, again.from_cache) == (False, True)
    assert again.image == first.image and again.instructions() == first.instructions()
    with pytest.raises(EnvironmentLacks, match="nvidia-cuda-nvrtc-cu12"):
        add(n=3)


def test_sources_compiled_together_are_those_compiled_alone_and_an_error_stays_with_its_own(empty_cache):
    def source(arch: str, n: int, text: str = ADD) -> Source:
        return Source(text, "add.cu", by_name(arch), "add", (("N", n),))

    kept = add("sm80", 3)
    wanted = [source("sm70", 1), source("sm80", 3), source("sm70", 5, "nonsense"), source("sm70", 2), source("host", 1)]
    first, again, refused, second, host = compile_all(wanted)
    assert isinstance(refused, BuildError) and "nonsense" in refused.__notes__[0] and isinstance(host, BuildError)
    assert isinstance(again, Cubin) and again.from_cache and again.image == kept.image
    for made, n in ((first, 1), (second, 2)):
        assert isinstance(made, Cubin) and not made.from_cache
        alone = add("sm70", n)
        assert alone.from_cache and alone.instructions() == made.instructions()
        assert made.instructions() == sass.decode(made.image, "add", by_name("sm70"))


def test_a_damaged_entry_or_image_is_compiled_again(empty_cache):
    first = add()
    for pattern in ("*.cubin", "*.entry"):
        (file,) = empty_cache.glob(pattern)
        whole = file.read_bytes()
        for damaged in (whole[:-7], whole[:200] + b"\0" + whole[201:], b""):
            file.write_bytes(damaged)
            again = add()
            assert (again.from_cache, again.image, again.path.read_bytes()) == (False, first.image, first.image)
    assert add().from_cache


def test_the_cache_is_private_and_leaves_no_temporary_files(empty_cache):
    empty_cache.mkdir(parents=True, mode=0o755)
    add()
    assert empty_cache.stat().st_mode & 0o777 == 0o700
    assert {file.suffix for file in empty_cache.iterdir()} == {".cubin", ".entry"}


def test_a_cache_that_cannot_be_written_is_a_clear_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(paths.CACHE_VARIABLE, str(tmp_path / "file"))
    with pytest.raises(DataError, match=paths.CACHE_VARIABLE):
        add()


def test_a_header_that_is_reached_is_part_of_the_key(empty_cache, tmp_path):
    root = tmp_path / "include"
    (root / "inner").mkdir(parents=True)
    (root / "outer.cuh").write_text('#include "inner/value.cuh"\n')
    (root / "unused.cuh").write_text("#error never read\n")
    source = '#include "outer.cuh"\nextern "C" __global__ void k(int* x) { *x = VALUE; }'

    def compiled(value: int) -> Cubin:
        (root / "inner" / "value.cuh").write_text(f"#define VALUE {value}\n")
        return compile_source(source, "k.cu", "sm80", include=(root,), kernel="k")

    assert compiled(1).sha256 != compiled(2).sha256
    (root / "unused.cuh").write_text("#error changed\n")
    assert compiled(1).from_cache


def test_two_processes_at_once_agree(empty_cache):
    code = f"from tests.compile.test_compile import add\nprint(add('sm80', 77).sha256)\nassert {ADD!r}"
    racing = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    printed = {process.communicate(timeout=100)[0].strip() for process in racing}
    assert [process.returncode for process in racing] == [0, 0]
    assert printed == {add("sm80", 77).sha256} and add("sm80", 77).from_cache


def test_another_nvrtc_stands_in_until_the_requested_one_is_there(empty_cache, monkeypatch):
    def pinned() -> Cubin:
        return compile_source(ADD, "add.cu", "sm80", (("N", 1),), kernel="add", nvrtc="11.3")

    stand_in = pinned()
    assert stand_in.other_toolchain and stand_in.requested_nvrtc == "11.3"
    assert pinned().from_cache
    monkeypatch.setattr(build, "installed", lambda requested: requested == "11.3")
    assert not pinned().from_cache


def test_versions_are_compared_by_number():
    assert nvrtc.matches("12.9.86", "12.9") and nvrtc.matches("12.9", "12.9")
    assert not nvrtc.matches("12.90", "12.9") and not nvrtc.matches("13.0.88", "12.9")


def test_a_source_error_names_its_line_and_an_unknown_kernel_the_known_ones():
    with pytest.raises(BuildError, match=r"k\.cu\(2\): error"):
        compile_source("\nint f() { return x; }", "k.cu", "sm80", kernel="k")
    with pytest.raises(BuildError, match="it has: add"):
        compile_source(ADD, "add.cu", "sm80", (("N", 1),), kernel="sub")
    with pytest.raises(BuildError, match="host is no GPU"):
        compile_source(ADD, "add.cu", "host", kernel="add")


def test_a_serialised_wgmma_is_fatal():
    # The accumulator is read between two wgmmas without a wait: ptxas serialises them (C7510 and its kin).
    source = """extern "C" __global__ void __launch_bounds__(128, 1) k(float* x, unsigned long long a) {
      float d[4] = {x[0], x[1], x[2], x[3]};
      for (int i = 0; i < 2; i++) {
        asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0,%1,%2,%3},%4,%4,1,1,1,0,0;"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a));
        x[threadIdx.x + i] = d[0];
      }
      asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;");
    }"""
    with pytest.raises(BuildError, match=r"\(C75(10|14|15|16|17)\)"):
        compile_source(source, "k.cu", "sm90a", kernel="k")


def test_a_probe_is_compiled_from_the_file_beside_it(tmp_path):
    (tmp_path / "adder.cu").write_text(ADD.replace("void add", "void adder"))
    probe = Probe("how fast is an add?", ("sm80",), (), run=lambda bench, point: []).found_at(tmp_path / "adder.py")
    one = Build((("N", 1),), SassContract((OpCount("FADD", 1),), "kernel"))
    assert compile_probe(probe, one, by_name("sm80")).kernel == "adder"
    (tmp_path / "adder.cu").unlink()
    with pytest.raises(DataError, match=r"adder\.cu"):
        compile_probe(probe, one, by_name("sm80"))
