"""Milliseconds a token of a random Llama that calls attention.sdpa where it called torch's function.

python -m tests.gpu.generation OUT.json

Transformers' own "sdpa" path, 16 layers of hidden size 4096, 32 heads on 8, bf16, a prompt of 4096 tokens and 256 new
ones with a growing cache. Each run is a process of its own, its first call included; ours goes before and after.
"""

import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from tests.elsewhere import python

PROMPT, NEW, WARM = 4096, 256, 8
IMPLEMENTATIONS = ("attention", "torch", "attention")


def generate(implementation: str) -> dict[str, Any]:
    """Generate greedily, token by token, and time each step."""
    import torch
    from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

    if implementation == "attention":
        import attention

        torch.nn.functional.scaled_dot_product_attention = attention.sdpa
    torch.manual_seed(0)
    heads = {"num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8}
    sizes = {"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336}
    config = LlamaConfig(**heads, **sizes, max_position_embeddings=PROMPT + NEW, attn_implementation="sdpa")
    with torch.device("cuda"):
        model = LlamaForCausalLM(config).to(torch.bfloat16).eval()
    tokens = torch.randint(0, 32000, (1, PROMPT), device="cuda")
    cache, steps, seconds = DynamicCache(config=config), tokens, []
    with torch.inference_mode():
        for _ in range(NEW):
            torch.cuda.synchronize()
            started = time.perf_counter()
            logits = model(steps, past_key_values=cache, use_cache=True).logits[:, -1]
            steps = logits.argmax(-1, keepdim=True)
            torch.cuda.synchronize()
            seconds.append(time.perf_counter() - started)
    told = [each * 1e3 for each in seconds[WARM:]]
    return {
        "implementation": implementation,
        "prefill_ms": round(seconds[0] * 1e3, 2),
        "ms_per_token": round(statistics.mean(told), 4),
        "median_ms_per_token": round(statistics.median(told), 4),
        "most_ms": round(max(told), 3),
        "last_logit_norm": float(logits.float().norm()),
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
    }


def main(out: str) -> int:
    """Run each implementation in a process of its own, and write what came of it."""
    rows = []
    for implementation in IMPLEMENTATIONS:
        told = python("-m", "tests.gpu.generation", "--one", implementation)
        assert told.returncode == 0, told.stderr
        rows.append(json.loads(told.stdout.splitlines()[-1]))
        sys.stdout.write(f"{rows[-1]}\n")
        Path(out).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    if sys.argv[1] == "--one":
        sys.stdout.write(json.dumps(generate(sys.argv[2])) + "\n")
        sys.exit(0)
    sys.exit(main(sys.argv[1]))
