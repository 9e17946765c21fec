"""What a timing says, whichever file holds it: data/attention (timed.timings) or a campaign (timed.campaigns)."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from attention.problem import AttentionProblem
from attention.timed.timing import PEER

Release = tuple[tuple[int, ...], int]  # of torch, and of cuDNN: 0 where a line does not name it


@dataclass(frozen=True)
class Observed:
    """One candidate of one problem: median seconds of its calls, and the range that holds the middle half of them.

    rows, used    of packed sequences their rows, queries and keys alike; of slots of a cache the keys in use
    text          the hash of our kernel's text, or the first digits of it (timed.identity)
    cubins        the hash of each step's cubin
    l2_read       whether what filled the L2 before each call was read; where a memset wrote it, it goes back meanwhile
    fetch_bytes   that a miss of TMA's brought into the L2
    """

    variant: str
    config: Mapping[str, int]
    passes: str
    problem: AttentionProblem
    seconds: float
    low: float
    high: float
    rows: tuple[int, ...] = ()
    used: tuple[int, ...] = ()
    text: str = ""
    cubins: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    run: str | None = None
    packages: Mapping[str, str] = field(default_factory=dict)
    l2_read: bool = False
    fetch_bytes: int = 256

    @property
    def release(self) -> Release:
        """Which code a kernel of torch's is."""
        torch = re.match(r"[\d.]*\d", self.packages.get("torch", ""))
        cudnn = self.packages.get("cudnn", "")
        return tuple(map(int, torch[0].split("."))) if torch else (), int(cudnn) if cudnn.isdigit() else 0


def of_newest_torch(every: Sequence[Observed]) -> Iterable[Observed]:
    """Without those of an older torch or cuDNN where a newer one was timed on the same problem.

    Which torch will run is not known where this is derived. Problems that the newer one has not met keep what is known:
    one new timing must not strike off all the others.
    """
    newest: dict[tuple[str, AttentionProblem], Release] = {}
    peers = [each for each in every if each.variant.startswith(PEER)]
    for each in peers:
        key = each.variant, each.problem
        newest[key] = max(newest.get(key, each.release), each.release)
    older = {id(each) for each in peers if each.release < newest[each.variant, each.problem]}
    return (each for each in every if id(each) not in older)
