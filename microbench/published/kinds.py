"""The kinds of GPU that have a published profile, and reading one; profiles.py derives them."""

from microbench import paths
from microbench.published import Published, load
from microbench.published.boards import Known
from microbench.published.facts import Kind
from microbench.results.profile import Profile, read

PROFILES = "profiles"  # their folder in data/published
SM_CLOCK = "sm_clock_mhz"


def kind_of(known: Known, published: Published | None = None) -> Kind | None:
    """The kind of all boards that a name may mean; None where there is none, or the name is of an architecture."""
    names = {board.name for board in known.boards}
    kinds = (published or load()).kinds
    return next((kind for kind in kinds if names and names.issubset(kind.boards)), None)


def of_kind(kind: Kind) -> Profile | None:
    """The published profile on file; None where there is no file. Raises DataError."""
    file = paths.SHIPPED / "published" / PROFILES / f"{kind.kind}.json"
    return read(file) if file.is_file() else None
