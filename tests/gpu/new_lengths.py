"""What a call costs whose shape is new, beside one whose shape was just called: host and GPU, waited for.

python -m tests.gpu.new_lengths OUT.json
"""

import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

CALLS, WARM = 40, 5
CACHES, PROMPT = (1000, 4100, 20000), 2000


def timed(call: Callable[[int], Callable[[], Any]]) -> tuple[float, float]:
    """Median microseconds of the first call of each shape, and of the second; `call` makes the n-th shape's."""
    import torch

    first, second = [], []
    for n in range(CALLS):
        run = call(n)
        for seconds in (first, second):
            torch.cuda.synchronize()
            started = time.perf_counter()
            run()
            torch.cuda.synchronize()
            seconds.append(time.perf_counter() - started)
    return tuple(round(statistics.median(each[WARM:]) * 1e6, 1) for each in (first, second))  # type: ignore[return-value]


def functions() -> dict[str, Any]:
    """Torch's function, and ours."""
    import torch

    import attention

    return {"torch": torch.nn.functional.scaled_dot_product_attention, "attention": attention.sdpa}


def main(out: str) -> int:
    """Time both functions on growing caches and on prompts of growing length."""
    import torch

    def normal(*shape: int) -> Any:
        return torch.randn(shape, device="cuda", dtype=torch.bfloat16)

    rows = []
    with torch.no_grad():
        for name, function in functions().items():
            for base in CACHES:
                query, cache = normal(1, 32, 1, 128), normal(1, 8, base + CALLS, 128)

                def decode(n: int, f: Any = function, q: Any = query, c: Any = cache, b: int = base) -> Any:
                    keys = c[:, :, : b + n].contiguous()
                    return lambda: f(q, keys, keys, enable_gqa=True)

                rows.append(
                    {"function": name, "what": f"one query, 32 heads on 8, from {base} keys", "us": timed(decode)}
                )

            def prompt(n: int, f: Any = function) -> Any:
                x = normal(1, 32, PROMPT + n, 128)
                return lambda: f(x, x, x, is_causal=True)

            rows.append(
                {"function": name, "what": f"a causal prompt, 32 heads, from {PROMPT} tokens", "us": timed(prompt)}
            )
    told = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "cudnn": torch.backends.cudnn.version()}
    found = [
        {"function": row["function"], "what": row["what"], "new_us": row["us"][0], "again_us": row["us"][1], **told}
        for row in rows
    ]
    Path(out).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    for each in found:
        sys.stdout.write(f"{each['function']}: {each['what']}: new {each['new_us']} us, again {each['again_us']} us\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
