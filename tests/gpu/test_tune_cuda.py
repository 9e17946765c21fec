"""`smscope tune` on this GPU: what it timed is what the next process runs, and a record is timed as its calls are."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from microbench import paths

pytestmark = pytest.mark.gpu
ROOT = Path(__file__).resolve().parents[2]
TOLERANCE = 2e-2  # float16, of outputs of size 1
RECORDED = """
import sys, torch, attention
query = torch.randn(2, 8, 512, 64, dtype=torch.float16, device="cuda")
with attention.record(sys.argv[1]):
    for _ in range(3):
        attention.sdpa(query, query, query, is_causal=True)
"""
NEXT = """
import json, torch, attention
query, key, value = (torch.randn(2, 8, 512, 64, dtype=torch.float16, device="cuda") for _ in range(3))
choice = attention.explain(query, key, value, is_causal=True).choice
out = attention.sdpa(query, key, value, is_causal=True).double()
right = torch.nn.functional.scaled_dot_product_attention(query.double(), key.double(), value.double(), is_causal=True)
pick = choice.pick
said = f"{pick.variant} ({pick.config})" if pick.config.values else pick.variant
print(json.dumps({"pick": said, "tuned": choice.tuning is not None, "error": float((out - right).abs().max())}))
"""


def in_a_process(data: Path, *arguments: str) -> str:
    environment = os.environ | {"SMSCOPE_DATA": str(data)}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()[-1] if done.stdout else ""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The shipped data, and room for tunings that no other test sees."""
    folder = tmp_path / "data"
    folder.mkdir()
    for each in paths.SHIPPED.iterdir():
        if each.name != "tunings":
            (folder / each.name).symlink_to(each)
    return folder


def told(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text)
    return found


def test_what_was_timed_is_what_the_next_process_runs(data: Path, tmp_path: Path) -> None:
    calls = tmp_path / "calls.jsonl"
    in_a_process(data, "-c", RECORDED, str(calls))
    before = told(in_a_process(data, "-c", NEXT))
    tuned = told(in_a_process(data, "-m", "smscope", "tune", str(calls), "--json"))
    (timed,) = tuned["timed"]
    assert (timed["calls"], tuned["left"], tuned["failed"]) == (3, [], 0) and "busy" not in timed["flags"]
    assert timed["before"] == before["pick"] and not before["tuned"]
    after = told(in_a_process(data, "-c", NEXT))
    assert after["tuned"] and after["pick"] == timed["now"] and after["error"] < TOLERANCE
    assert timed["now_seconds"] <= (timed["before_seconds"] or timed["now_seconds"])
