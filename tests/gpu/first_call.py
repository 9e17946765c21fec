"""What a first call costs, by what it finds: nothing, cubins on disk, everything in memory. Each in a new process.

    python -m tests.gpu.first_call OUT.json

Imports, the CUDA context and a first kernel of torch's are over before the clock starts.
"""

import json
import sys
import tempfile
import time
from pathlib import Path

from attention.verify.builds import tuned
from microbench.paths import CACHE_VARIABLE
from tests.elsewhere import python

SHAPE = (1, 16, 1024, 128)


def measure(path: str) -> dict[str, float]:
    """Milliseconds of the first and the second call of a variant in this process, and of a first attention.sdpa."""
    import torch

    import attention
    from attention.problem import AttentionProblem
    from attention.variant import by_path
    from attention.verify.build_matrix import legal
    from attention.verify.builds import ARCH
    from microbench.machine.arch import by_name

    q, k, v = (torch.randn(SHAPE, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    torch.nn.functional.scaled_dot_product_attention(q, k, v)
    torch.cuda.synchronize()
    found: dict[str, float] = {}
    for name in ("sdpa_first_ms", "sdpa_second_ms"):
        started = time.perf_counter()
        attention.sdpa(q, k, v)
        torch.cuda.synchronize()
        found[name] = (time.perf_counter() - started) * 1e3
    problem = AttentionProblem(*SHAPE[:2], SHAPE[1], SHAPE[2], SHAPE[2], SHAPE[3], dtype="bfloat16", device="cuda")
    variant = by_path(path)
    forward, config = variant.load(), legal(variant, problem, by_name(ARCH))[0]
    for name in ("forward_first_ms", "forward_second_ms"):
        started = time.perf_counter()
        forward(q, k, v, problem, config)
        torch.cuda.synchronize()
        found[name] = (time.perf_counter() - started) * 1e3
    return found


def main(out: str) -> int:
    """Every variant with an empty cache folder, and again with what the first process left there."""
    rows = []
    for path in tuned():
        with tempfile.TemporaryDirectory() as cache:
            for finds in ("nothing", "cubins on disk"):
                done = python("-m", "tests.gpu.first_call", "--measure", path, **{CACHE_VARIABLE: cache})
                if done.returncode:
                    sys.stdout.write(done.stderr)
                    return 1
                rows.append({"variant": path, "finds": finds} | json.loads(done.stdout.splitlines()[-1]))
                sys.stdout.write(f"{rows[-1]}\n")
    Path(out).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    if sys.argv[1] == "--measure":
        sys.stdout.write(json.dumps(measure(sys.argv[2])) + "\n")
    else:
        sys.exit(main(sys.argv[1]))
