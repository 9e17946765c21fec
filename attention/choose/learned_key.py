"""What the timings of a machine teach came from: one hash, which says whether what is on disk still holds.

It is of the profile, the sizes of the files of timings (which are only ever appended), the cubins on file, and the code
that reads, predicts and runs. Reading that code takes a first call 8 ms, so its hash is kept in the user's cache beside
the sizes and times of the files that were read.
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from attention.timed import cubins, timings
from attention.timed.identity import hashed
from attention.variant import KERNELS, TORCHS, Variant, every_shipped
from microbench import files, paths
from microbench.results.profile import Profile

Stamp = tuple[str, int, int]  # a file, its size, and when it changed

# What a correction comes from beside data: the text of these, and of what describes the variants.
DECIDING = (
    "timed/timing",
    "timed/timings",
    "timed/timing_faults",
    "timed/identity",
    "timed/cubins",
    "choose/learned",
    "choose/learned_key",
    "choose/calibration",
    "choose/corrections",
    "choose/model",
    "choose/prediction",
    "choose/rates",
    "choose/shares",
    "choose/warpgroups/coefficients",
    "choose/warpgroups/dealt",
    "choose/warpgroups/predicted",
    "choose/warpgroups/scores",
    "choose/warpgroups/step",
    "problem",
    "band",
    "tile",
    "variant",
    "kernels/common/family",
    "kernels/common/staged",
    "kernels/torch/common/limits",
)
DESCRIBING = ("variant.py", "arguments.py")


def key_of(profile: Profile) -> str:
    """The hash for a machine, now."""
    constants = [(each.name, each.value, bool(each.doubtful)) for each in profile.constants]
    machine = (profile.gpu, profile.arch, profile.sm_count, profile.clock_hz, constants)
    sizes = [(Path(path).name, size) for path, size, _ in stamps(timings.files(profile.gpu))]
    compiled = [cubins.bytes_of(variant) for variant in _ours()]
    return hashlib.sha256(repr((machine, sizes, _code(), compiled)).encode()).hexdigest()


def stamps(of: list[Path]) -> Iterator[Stamp]:
    """The files of these that are there."""
    for file in of:
        with suppress(OSError):  # gone since
            stat = file.stat()
            yield str(file), stat.st_size, stat.st_mtime_ns


def _ours() -> list[Variant]:
    return [variant for variant in every_shipped() if variant.owner == "smscope"]


def _memory() -> Path:
    """Where the hash of this copy of the package is kept: others share the cache."""
    copy = hashlib.sha256(str(KERNELS).encode()).hexdigest()[:16]
    return paths.cache() / "corrections" / f"code-{copy}.json"


@cache
def _code() -> str:
    memory = _memory()
    variants = [variant.path for variant in every_shipped()]
    with suppress(OSError, ValueError, TypeError, KeyError):
        kept = json.loads(memory.read_bytes())
        now = [list(each) for each in stamps([Path(path) for path, *_ in kept["read"]])]
        if now == kept["read"] and kept["variants"] == variants:
            return str(kept["code"])
    read = [KERNELS.parent / f"{name}.py" for name in DECIDING]
    read += sorted((KERNELS / TORCHS).glob("*.py"))
    read += [variant.folder / name for variant in _ours() for name in DESCRIBING]
    digest = hashlib.sha256()
    for file in read:
        digest.update(file.read_bytes() if file.is_file() else b"")
    for variant in _ours():
        text_sha256, sources = hashed(variant.path)
        digest.update(text_sha256.encode())
        read += sources
    known = {"read": list(stamps(read)), "variants": variants, "code": digest.hexdigest()}
    with suppress(OSError):  # then the next process reads it all again
        files.put(memory, json.dumps(known))
    return digest.hexdigest()
