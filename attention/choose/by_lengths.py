"""What a choice would be by the sequences' own lengths, which a call does not know."""

from attention.choose.candidates import predicted, preference, ties
from attention.choose.choose import Choice
from attention.choose.corrections import Corrections
from attention.choose.lengths import Lengths
from attention.variant import by_path
from microbench.console.si import written
from microbench.results.profile import Profile


def told(profile: Profile, choice: Choice, lengths: Lengths, timings: Corrections) -> str:
    """A sentence without a full stop: what the pick takes by these lengths, and what would be picked by them."""
    asked = [(by_path(each.variant), each.config) for each in choice.candidates]
    found = predicted(profile, choice.problem, asked, timings, lengths)
    own = next(each for each in found if (each.variant, each.config) == (choice.pick.variant, choice.pick.config))
    if own.prediction is None:
        return f"by these lengths nothing is predicted either: {own.unpredicted}"
    said = f"by the sequences' own lengths, which a call does not know, it takes {_seconds(own.prediction.seconds)}"
    best = min(ties(found), key=preference)
    if best.prediction is None or best == own:
        return said
    return f"{said}, and {best.variant} ({best.config}) would be picked with {_seconds(best.prediction.seconds)}"


def _seconds(seconds: float) -> str:
    return written(seconds, "s")
