"""Probes that behave badly on purpose, as two files each, written into a temporary folder; none of them compiles."""

from pathlib import Path
from textwrap import dedent

HEAD = """
import math, os, signal, time
from microbench.machine.arch import CUDA, HOST
from microbench.results.curves import at, peak
from microbench.errors import DeviceError
from microbench.probe import Axis, Bound, Constant, Metric, Probe, Sample

CYCLES = Metric("latency_cycles", "cycles", Bound("a load takes two clocks", lower=2.0))


def sample(value, flags=()):
    return [Sample("latency_cycles", value, value, value, 5, 3000.0, flags)]
"""

BODIES = {
    "steady": """
        def run(bench, point):
            return sample(4.0 + point["size"])

        PROBE = Probe("Is it steady?", HOST, (CYCLES,), run, axes=(Axis("size", (1, 2, 3), quick=(1,)),),
                      constants=(Constant("steady_cycles", "latency_cycles", at(size=1)),
                                 Constant("steady_far_cycles", "latency_cycles", at(size=3))))
    """,
    "hangs": """
        def run(bench, point):
            time.sleep(3600)

        PROBE = Probe("Does it end?", HOST, (CYCLES,), run, time_limit_s=0.3)
    """,
    "crashes": """
        def run(bench, point):
            os._exit(7)

        PROBE = Probe("Does it live?", HOST, (CYCLES,), run)
    """,
    "breaks_context": """
        def run(bench, point):
            raise DeviceError("an illegal address; the context is broken")

        PROBE = Probe("Is it stable?", HOST, (CYCLES,), run, axes=(Axis("size", (1, 2, 3, 4, 5)),))
    """,
    "raises": """
        def run(bench, point):
            raise ValueError("no file /home/someone/secret/list.txt")

        PROBE = Probe("Does it work?", HOST, (CYCLES,), run)
    """,
    "recovers": """
        MARK = os.path.join(os.path.dirname(__file__), "repaired")

        def run(bench, point):
            if point["size"] == 2 and not os.path.exists(MARK):
                raise OSError(28, "No space left on device")
            if point["size"] == 3:
                return sample(1.0)
            return sample(5.0)

        PROBE = Probe("Does it recover?", HOST, (CYCLES,), run, axes=(Axis("size", (1, 2, 3)),))
    """,
    "always_busy": """
        def run(bench, point):
            return sample(9.0, ("stolen",))

        PROBE = Probe("Is it quiet?", HOST, (CYCLES,), run,
                      constants=(Constant("never_quiet_cycles", "latency_cycles", at()),))
    """,
    "gives_nan": """
        def run(bench, point):
            return sample(math.nan)

        PROBE = Probe("Is it a number?", HOST, (CYCLES,), run)
    """,
    "too_fast": """
        def run(bench, point):
            return sample(2.0 / 1.05)

        PROBE = Probe("Is it possible?", HOST, (CYCLES,), run)
    """,
    "throttled": """
        def run(bench, point):
            return sample(5.0, ("throttled:power-cap",))

        PROBE = Probe("Is it cool?", HOST, (CYCLES,), run)
    """,
    "skips": """
        def run(bench, point):
            return sample(4.0)

        PROBE = Probe("Does it fit?", HOST, (CYCLES,), run, axes=(Axis("size", (1, 2)),),
                      skip=lambda machine, point: "too large" if point["size"] == 2 else None)
    """,
    "gpu_only": """
        def run(bench, point):
            return sample(4.0)

        PROBE = Probe("Is it a GPU?", CUDA, (CYCLES,), run)
    """,
    "slow": """
        def run(bench, point):
            time.sleep(0.05)
            return sample(4.0)

        PROBE = Probe("Can it be interrupted?", HOST, (CYCLES,), run, axes=(Axis("size", tuple(range(30))),),
                      constants=(Constant("slow_cycles", "latency_cycles", at(size=1)),))
    """,
}


def write(folder: Path, *names: str) -> Path:
    """Two files for each name under folder/fake; returns `folder`, for `--probes`."""
    family = folder / "fake"
    family.mkdir(parents=True, exist_ok=True)
    for name in names:
        (family / f"{name}.py").write_text(HEAD + dedent(BODIES[name]))
        (family / f"{name}.cu").write_text(f'extern "C" __global__ void {name}() {{}}\n')
    return folder
