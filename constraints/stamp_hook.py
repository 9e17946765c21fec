"""Wheel build hook: writes microbench/commit.json, so that an installed wheel can say which commit it was made from."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class StampHook(BuildHookInterface[Any]):
    """Runs microbench/machine/stamp.py by itself: the build's environment holds none of smscope's dependencies."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        stamp = Path(self.root) / "microbench" / "machine" / "stamp.py"
        subprocess.run([sys.executable, "-I", str(stamp)], check=True, stdout=subprocess.DEVNULL)
