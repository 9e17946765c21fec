"""The release of NVIDIA's driver, by the files of its kernel module: NVML takes 10 ms and more to be asked."""

import re
from contextlib import suppress
from functools import cache
from pathlib import Path

from microbench.machine import nvml

FILES = (Path("/proc/driver/nvidia/version"), Path("/sys/module/nvidia/version"))
RELEASE = re.compile(r"(?<![\d.])\d{3,}\.\d+(?:\.\d+)?(?![\d.])")  # 580.95.05


@cache
def release() -> str | None:
    """'580.95.05'; None where there is no driver. NVML is asked where no file of the module can be read."""
    for file in FILES:
        with suppress(OSError):
            if found := RELEASE.search(file.read_text("utf-8", errors="replace")):
                return found[0]
    gpus = nvml.visible_gpus()
    return nvml.facts(gpus[0]).driver if gpus else None
