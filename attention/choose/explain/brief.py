"""The first lines of an explanation alone: the pick, its seconds and what bounds it, and what comes second."""

from collections.abc import Iterator

from attention.choose.candidates import Candidate
from attention.choose.explain.explanation import Explanation
from microbench.console.si import counted, written


def brief(explained: Explanation) -> Iterator[str]:
    """Sentences. Where the second is the same kernel in another configuration, the first of another one follows."""
    yield f"{explained.headline()}."
    for name, each in seconds_of(explained):
        yield f"{name}: {_said(explained, each)}."
    if explained.stand_in:
        yield f"{explained.stand_in[0].upper()}{explained.stand_in[1:]}."
    if others := len(explained.cautions) - bool(explained.stand_in):
        yield f"{counted(others, 'caution')} not shown: leave out --brief."


def told(explained: Explanation) -> dict[str, object]:
    """The same for a program."""
    found: dict[str, object] = {
        "problem": str(explained.choice.problem),
        "gpu": explained.choice.gpu,
        "stand_in": explained.stand_in,
        "pick": _told(explained, explained.choice.pick),
    }
    for name, each in seconds_of(explained):
        found[name.lower().replace(" ", "_")] = _told(explained, each)
    return found | {"cautions": len(explained.cautions)}


def seconds_of(explained: Explanation) -> Iterator[tuple[str, Candidate]]:
    """By timings where these decided, and else in the order of candidates, what stands behind the pick."""
    choice = explained.choice
    behind = [each for each in choice.candidates if each != choice.pick]
    if choice.tuning is not None:
        behind.sort(key=lambda each: _timed(explained, each) or float("inf"))
    if not behind:
        return
    yield "Second", behind[0]
    other = next((each for each in behind if each.variant != choice.pick.variant), None)
    if other is not None and other is not behind[0]:
        yield "Second kernel", other


def _timed(explained: Explanation, candidate: Candidate) -> float | None:
    tuning = explained.choice.tuning
    found = tuning.of(candidate) if tuning is not None else None
    return None if found is None else found.seconds


def _said(explained: Explanation, each: Candidate) -> str:
    config = f" ({each.config})" if each.config.values else ""
    if each.prediction is None:
        said = f"not predicted, because {each.unpredicted}"
    else:
        said = f"predicted {written(each.prediction.seconds, 's')}, bound by {each.prediction.bound_by}"
    timed = _timed(explained, each)
    said = said if timed is None else f"timed {written(timed, 's')}, {said}"
    doubt = "; timings do not confirm it" if each in explained.choice.mistrusted else ""
    return f"{each.variant}{config}, {said}{doubt}"


def _told(explained: Explanation, each: Candidate) -> dict[str, object]:
    return {
        "variant": each.variant,
        "config": str(each.config),
        "timed_seconds": _timed(explained, each),
        "predicted_seconds": each.prediction.seconds if each.prediction else None,
        "bound_by": each.prediction.bound_by if each.prediction else None,
        "unpredicted": each.unpredicted,
    }
