"""Probes that behave badly on purpose, as two files each, written into a temporary folder; none of them compiles."""

from dataclasses import dataclass
from pathlib import Path

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

PROBE = """
def run(bench, point):
    {run}

PROBE = Probe({asks!r}, {archs}, (CYCLES,), run, {more})
"""


@dataclass(frozen=True)
class Fake:
    """A probe: what it asks, does when it runs, and declares beside that."""

    asks: str
    run: str
    more: str = ""
    archs: str = "HOST"


TWICE = """constants=(Constant("steady_cycles", "latency_cycles", at(size=1)),
    Constant("steady_far_cycles", "latency_cycles", at(size=3)))"""
REPAIRED = """if point["size"] == 2 and not os.path.exists(os.path.join(os.path.dirname(__file__), "repaired")):
        raise OSError(28, "No space left on device")
    return sample(1.0 if point["size"] == 3 else 5.0)"""
NEVER = 'constants=(Constant("never_quiet_cycles", "latency_cycles", at()),)'
SLOW = 'axes=(Axis("size", tuple(range(30))),), constants=(Constant("slow_cycles", "latency_cycles", at(size=1)),)'
TOO_LARGE = 'axes=(Axis("size", (1, 2)),), skip=lambda machine, point: "too large" if point["size"] == 2 else None'
FAKES = {
    "steady": Fake(
        "Is it steady?", 'return sample(4.0 + point["size"])', f'axes=(Axis("size", (1, 2, 3), quick=(1,)),), {TWICE}'
    ),
    "hangs": Fake("Does it end?", "time.sleep(3600)", "time_limit_s=0.3"),
    "hangs_once": Fake(
        "Does each point end?",
        'if point["size"] == 2: time.sleep(3600)\n    return sample(4.0, (f"worker:{os.getpid()}",))',
        'axes=(Axis("size", (1, 2, 3, 4, 5)),), time_limit_s=0.5',
    ),
    "crashes": Fake("Does it live?", "os._exit(7)"),
    "breaks_context": Fake(
        "Is it stable?",
        'raise DeviceError("an illegal address; the context is broken")',
        'axes=(Axis("size", (1, 2, 3, 4, 5)),)',
    ),
    "raises": Fake("Does it work?", 'raise ValueError("no file /home/someone/secret/list.txt")'),
    "recovers": Fake("Does it recover?", REPAIRED, 'axes=(Axis("size", (1, 2, 3)),)'),
    "always_busy": Fake("Is it quiet?", 'return sample(9.0, ("stolen",))', NEVER),
    "gives_nan": Fake("Is it a number?", "return sample(math.nan)"),
    "too_fast": Fake("Is it possible?", "return sample(2.0 / 1.05)"),
    "throttled": Fake("Is it cool?", 'return sample(5.0, ("throttled:power-cap",))'),
    "skips": Fake("Does it fit?", "return sample(4.0)", TOO_LARGE),
    "gpu_only": Fake("Is it a GPU?", "return sample(4.0)", archs="CUDA"),
    "slow": Fake("Can it be interrupted?", "time.sleep(0.05); return sample(4.0)", SLOW),
}


def write(folder: Path, *names: str) -> Path:
    """Two files for each name under folder/fake; returns `folder`, for `--probes`."""
    family = folder / "fake"
    family.mkdir(parents=True, exist_ok=True)
    for name in names:
        (family / f"{name}.py").write_text(HEAD + PROBE.format(**vars(FAKES[name])))
        (family / f"{name}.cu").write_text(f'extern "C" __global__ void {name}() {{}}\n')
    return folder
