"""What choosing adds to a first call: attention.sdpa beside our kernel called by name, each in processes of their own.

    python -m tests.gpu.first_sdpa OUT.json

The cubin is on disk; imports of torch and this package, a CUDA context and a first kernel of torch's are over before
the clock starts. The third way has every timing of the machine ten times over. Beside the wall's clock the CPU's:
processes differ by a hundred milliseconds in what else the host does meanwhile.
Torch's objects are frozen first: to collect among them takes 70 to 110 ms, in whichever call allocates enough for it.
"""

import ast
import json
import shutil
import statistics
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from microbench import paths
from microbench.machine import stamp
from tests.elsewhere import printed

GPU = "h200-sxm-141gb"
PROCESSES = 9
BEGIN = """
import gc, time, torch, attention
q, k, v = (torch.randn(1, 16, 1024, 128, device="cuda", dtype=torch.bfloat16) for _ in range(3))
torch.nn.functional.scaled_dot_product_attention(q, k, v)
torch.cuda.synchronize()
gc.collect()
gc.freeze()
started, spent = time.perf_counter(), time.process_time()
"""
END = """
torch.cuda.synchronize()
print((time.perf_counter() - started) * 1e3, (time.process_time() - spent) * 1e3)
"""
SDPA = "attention.sdpa(q, k, v)"
KERNEL = """
from attention.problem import AttentionProblem
from attention.variant import Config, by_path
problem = AttentionProblem(1, 16, 16, 1024, 1024, 128, dtype="bfloat16", device="cuda")
by_path("{variant}").load()(q, k, v, problem, Config({config}))
"""
PICK = """
from attention.choose import learned
from attention.choose.choose import choose
from attention.choose.classes import representative
from attention.choose.machine import machine_profile
from attention.problem import AttentionProblem
problem = AttentionProblem(1, 16, 16, 1024, 1024, 128, dtype="bfloat16", device="cuda")
profile = machine_profile("cuda:0").profile
pick = choose(profile, representative(problem), efficiencies=learned.of_machine(profile)).pick
print(repr((pick.variant, pick.config.values)))
"""


DERIVE = f"""
from attention.choose import learned; from attention.timed import timings
from microbench.results.profile import Profile
assert learned.write(Profile.load("{GPU}"))
print(len(timings.files("{GPU}")))
"""


def run(program: str, data: Path | None = None) -> str:
    """What a new process prints last."""
    return printed(program, **({paths.DATA_VARIABLE: str(data)} if data else {})).splitlines()[-1]


def timed(call: str, data: Path | None = None) -> tuple[float, ...]:
    """Milliseconds of a first call in a new process, by the wall and of the CPU."""
    return tuple(float(each) for each in run(BEGIN + call + END, data).split())


def tenfold(folder: Path) -> Path:
    """A copy of data/ with each timing of the GPU ten times, and what they teach derived from them."""
    data = folder / "data"
    shutil.copytree(paths.writable_data(), data)
    file = data / "attention" / f"{GPU}.jsonl"
    file.write_text(file.read_text() * 10)
    assert run(DERIVE, data) == "1"
    return data


def main(out: str) -> int:
    """Append the medians, in turns."""
    variant, config = ast.literal_eval(run(PICK))
    ways = {"our kernel by name": KERNEL.format(variant=variant, config=config), "attention.sdpa": SDPA}
    found: dict[str, list[tuple[float, ...]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        data = tenfold(Path(folder))
        for _ in range(PROCESSES + 1):
            for name, call in ways.items():
                found.setdefault(name, []).append(timed(call))
            found.setdefault("attention.sdpa, ten times the timings", []).append(timed(SDPA, data))
    rows = json.loads(Path(out).read_text()) if Path(out).is_file() else []
    for name, times in found.items():
        wall, cpu = zip(*times[1:], strict=True)
        row = {"call": name, "first_ms": statistics.median(wall), "low": min(wall), "high": max(wall)}
        row |= {"first_cpu_ms": statistics.median(cpu)}
        row |= {"n": PROCESSES, "variant": variant, "measured_utc": datetime.now(UTC).isoformat(timespec="seconds")}
        rows.append(row | {"commit": stamp.commit().sha, "dirty": stamp.commit().dirty})
        sys.stdout.write(f"{row}\n")
    Path(out).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
