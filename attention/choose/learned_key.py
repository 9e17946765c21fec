"""What the timings of a machine teach came from: one hash, which says whether what is on disk still holds.

It is of the profile, the sizes of the files of timings (which are only ever appended), the cubins on file, and the code
that reads, predicts and runs; and after a dash of the campaigns, for which calls do not ask: their lines count from the
`smscope profile` after them on, and a wheel holds none of them. Reading that code takes a first call 8 ms, so its hash
is kept in the user's cache beside the sizes and times of the files that were read, and with it the hash of each
kernel's text.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from attention.timed import campaigns, cubins, timings
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
    "timed/campaigns",
    "timed/observed",
    "timed/named",
    "choose/calibration",
    "choose/coefficients/code",
    "choose/coefficients/coefficient",
    "choose/coefficients/load",
    "choose/coefficients/mask",
    "choose/coefficients/part",
    "choose/coefficients/table",
    "choose/corrections",
    "choose/guesses",
    "choose/kinds",
    "choose/learned",
    "choose/learned_key",
    "choose/lengths",
    "choose/lines",
    "choose/longest_first",
    "choose/model",
    "choose/one_clock",
    "choose/prediction",
    "choose/queues",
    "choose/rates",
    "choose/samples",
    "choose/scores",
    "choose/shares",
    "choose/sized",
    "choose/stairs",
    "choose/unlike",
    "choose/warpgroups/again",
    "choose/warpgroups/code",
    "choose/warpgroups/dealt",
    "choose/warpgroups/edges",
    "choose/warpgroups/fewer",
    "choose/warpgroups/gathered",
    "choose/warpgroups/handed",
    "choose/warpgroups/laid_out",
    "choose/warpgroups/masks",
    "choose/warpgroups/parts",
    "choose/warpgroups/predicted",
    "choose/warpgroups/ring",
    "choose/warpgroups/step",
    "choose/warps/at_least",
    "choose/warps/block",
    "choose/warps/dealt",
    "choose/warps/gathered",
    "choose/warps/predicted",
    "choose/warps/waits",
    "choose/warps/work",
    "choose/waves",
    "problem",
    "band",
    "feature",
    "features/mask",
    "tile",
    "variant",
    "kernels/common/family",
    "kernels/common/halves",
    "kernels/common/key_splits",
    "kernels/common/staged",
    "kernels/common/staged_tile",
    "kernels/torch/common/flash_tile",
    "kernels/torch/common/limits",
)
DESCRIBING = ("variant.py", "arguments.py")


def key_of(profile: Profile) -> str:
    """The hash for a machine, now, and that of its campaigns."""
    lines = campaigns.sizes(profile.gpu)
    return key_of_calls(profile) + (_hash((lines, campaigns.verdicts(profile.gpu))) if lines else "")


def key_of_calls(profile: Profile) -> str:
    """What the key begins with whatever campaigns there are."""
    constants = [(each.name, each.value, bool(each.doubtful)) for each in profile.constants]
    machine = (profile.gpu, profile.arch, profile.sm_count, profile.clock_hz, constants)
    sizes = [(Path(path).name, size) for path, size, _ in stamps(timings.files(profile.gpu))]
    compiled = [cubins.bytes_of(variant) for variant in _ours()]
    return f"{_hash((machine, sizes, _code().sha256, compiled))}-"


def _hash(of: object) -> str:
    return hashlib.sha256(repr(of).encode()).hexdigest()


def texts() -> Mapping[str, str]:
    """The hash of each of our kernels' text (timed.identity.text_sha256), by variant, without reading them again."""
    return _code().texts


def stamps(of: Iterable[Path]) -> Iterator[Stamp]:
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


@dataclass(frozen=True)
class _Code:
    """The hash of all of the code, and of each kernel's text by its variant."""

    sha256: str
    texts: Mapping[str, str]


@cache
def _code() -> _Code:
    memory = _memory()
    variants = [variant.path for variant in every_shipped()]
    with suppress(OSError, ValueError, TypeError, KeyError, AttributeError):
        kept = json.loads(memory.read_bytes())
        now = [list(each) for each in stamps([Path(path) for path, *_ in kept["read"]])]
        if now == kept["read"] and kept["variants"] == variants:
            return _Code(str(kept["code"]), {str(path): str(text) for path, text in kept["texts"].items()})
    read = [KERNELS.parent / f"{name}.py" for name in DECIDING]
    read += sorted((KERNELS / TORCHS).glob("*.py"))
    read += [variant.folder / name for variant in _ours() for name in DESCRIBING]
    digest = hashlib.sha256()
    for file in read:
        digest.update(file.read_bytes() if file.is_file() else b"")
    texts: dict[str, str] = {}
    for variant in _ours():
        texts[variant.path], sources = hashed(variant.path)
        digest.update(texts[variant.path].encode())
        read += sources
    code = digest.hexdigest()
    known = {"read": list(stamps(read)), "variants": variants, "code": code, "texts": texts}
    with suppress(OSError):  # then the next process reads it all again
        files.put(memory, json.dumps(known))
    return _Code(code, texts)
