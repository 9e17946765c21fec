"""What timings teach is derived again when code changes that it comes from: the key holds all of that code."""

from attention.choose.learned_key import DECIDING
from attention.variant import KERNELS
from microbench.machine import stamp
from tests.cpu.imports import imported

# What code that teaches imports, and no correction comes of, but for the limits of an architecture in microbench. What
# describes a variant is in the key by its own name.
BESIDE = (
    *("attention/call.py", "attention/errors.py", "attention/forwarded.py", "attention/kernels/common/spills.py"),
    *("attention/kernels/launch/", "attention/kernels/sm", "microbench/"),
)


def test_the_key_holds_all_code_that_a_correction_comes_from() -> None:
    root, attention = stamp.ROOT, KERNELS.parent
    deciding = {attention / f"{name}.py" for name in DECIDING}
    assert all(file.is_file() for file in deciding)
    start = (attention / "choose" / "calibration.py", attention / "choose" / "samples.py")
    reached = imported((*start, *KERNELS.glob("sm*/*/*/variant.py")), root)
    others = {file.relative_to(root).as_posix() for file in reached - deciding}
    assert attention / "choose" / "model.py" in reached and not {each for each in others if not each.startswith(BESIDE)}
