"""What campaigns timed of a kernel whose text has changed, compiled anew by the compiler of the machine that timed it.

A campaign times some two thousand builds, by the NVRTC that is there. A text may change where few of them do: what the
same compiler makes the same code of is the same kernel, and its timings go on.
"""

from collections.abc import Iterable

from attention.kernels.launch.source import source_of
from attention.timed import cubins
from attention.timed.cubins import Build
from attention.timed.observed import Observed
from attention.variant import CudaBuild, by_path
from microbench.compile import Cubin, compile_all
from microbench.compile.together import compile_together
from microbench.machine.arch import Arch


def renew(arch: Arch, timings: Iterable[Observed]) -> dict[str, int]:
    """Write a line for each build of today's text whose cubin was timed: how many are new, by the kernel's path.

    Raises EnvironmentLacks without NVRTC, DataError.
    """
    timed: dict[str, dict[Build, CudaBuild]] = {}
    ran: dict[str, set[str]] = {}
    for timing in timings:
        ran.setdefault(timing.variant, set()).update(timing.cubins)
        for step in cubins.asked(timing):
            timed.setdefault(timing.variant, {})[cubins.build_of(arch.name, step.kernel, step.defines)] = step
    sources = {
        path: {step: source_of(by_path(path).folder, step, arch) for step in steps.values()}
        for path, steps in timed.items()
    }
    compile_together([source for of in sources.values() for source in of.values()])
    return {
        path: _written(path, arch, list(of), compile_all(list(of.values())), ran[path]) for path, of in sources.items()
    }


def _written(path: str, arch: Arch, steps: list[CudaBuild], made: tuple[object, ...], ran: set[str]) -> int:
    """Cubins of one code are not alike to the byte: those of earlier texts go on by the code on file."""
    variant = by_path(path)
    new, on_file = ran - cubins.current(variant), set(cubins.read(variant))
    of_build = dict[Build, set[cubins.Compiled]]()
    for line in on_file:
        of_build.setdefault(line.build, set()).add(line)
    compiled = [
        cubins.line_of(variant, arch, step, cubin)
        for step, cubin in zip(steps, made, strict=True)
        if isinstance(cubin, Cubin)
    ]
    earlier = ((each, *cubins.alike(each, of_build.get(each.build, set()))) for each in compiled)
    found = {line for lines in earlier for line in lines if line.cubin_sha256 in new}
    if found:
        cubins.write(variant, on_file | found)
    return len(found)
