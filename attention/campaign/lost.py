"""Candidates that took the GPU with them, noted beside the compiled kernels: the next call goes on without them.

An illegal access ends every context of its process, a kernel that does not end keeps the GPU, and a call begun again
would meet the same candidate first. A note holds for the commit that it was made at.
"""

from collections.abc import Mapping

from attention.campaign.posed import Posed
from microbench import files, paths
from microbench.files import Frozen
from microbench.machine import stamp

AGAIN = "delete it, and candidates that lost the GPU are tried again"


class Note(Frozen):
    """`candidate` as the timer names it: a variant and its configuration, a peer, or a function."""

    problem: str
    candidate: str
    commit: str | None = None
    why: str


def known(posed: Posed) -> Mapping[str, str]:
    """Why candidates are not tried on a problem, by their names. Raises DataError."""
    place = paths.cache() / "lost-gpus.jsonl"
    notes = files.read(place, Note, AGAIN) if place.is_file() else ()
    mine = (each for each in notes if (each.problem, each.commit) == (str(posed), stamp.commit().sha))
    return {each.candidate: f"it lost the GPU: {each.why}" for each in mine}


def note(posed: Posed, candidate: str, why: str) -> None:
    """Leave it out from now on."""
    made = Note(problem=str(posed), candidate=candidate, commit=stamp.commit().sha, why=why)
    files.append(paths.cache() / "lost-gpus.jsonl", made)
