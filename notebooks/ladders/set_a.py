"""The problems of set a as a GPU's last two campaigns timed them, and what the model says of every configuration."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from attention.campaign import choosers, plan, rows
from attention.campaign.posed import Posed
from attention.campaign.regret import Judged, Pick, judged
from attention.compare.results import AMPERE, HOPPER
from attention.kernels.sm90a.packed import packed
from microbench.results.profile import Profile

CAMPAIGNS = 2
SHARED_NONE = "h100-sxm-80gb"
GPUS = ("h200-sxm-141gb", SHARED_NONE)
KERNELS = (HOPPER, AMPERE)
SHORT = {"": "all of ours", HOPPER: "sm90a", AMPERE: "sm80"}


@cache
def problems(gpu: str) -> tuple[Judged, ...]:
    """Those that both campaigns timed, with the configurations that were right in each.

    Without those whose heads share a warpgroup's rows where a GPU timed none such: today's predictions are of others.
    """
    timed = (rows.read(gpu, "a", number) for number in campaigns(gpu))
    return judged(*(tuple(row for row in of if gpu != SHARED_NONE or not packed(row.problem, 2)) for of in timed))


def campaigns(gpu: str) -> tuple[int, ...]:
    return tuple(rows.campaigns(gpu, "a")[-CAMPAIGNS:])


def earlier_text(gpu: str) -> str:
    """Which of them timed other kernels than today's, in few words; nothing where none did."""
    today, numbers = plan.texts(Profile.load(gpu).arch), campaigns(gpu)
    other = [number for number in numbers if rows.read(gpu, "a", number)[-1].texts != today]
    which = "" if len(other) == len(numbers) else f"campaign {' and '.join(f'a-{each}' for each in other)} of "
    return f"{which}an earlier text of our kernels" if other else ""


@dataclass(frozen=True)
class Prediction:
    """One configuration on one problem, in seconds."""

    posed: Posed
    pick: Pick
    predicted: float
    measured: float

    @property
    def ratio(self) -> float:
        """Predicted over measured: below 1 the model is too fast."""
        return self.predicted / self.measured

    @property
    def off(self) -> float:
        """How many times too fast or too slow."""
        return max(self.ratio, 1 / self.ratio)


@cache
def predictions(gpu: str) -> tuple[Prediction, ...]:
    """Every configuration that the constants of the GPU's own profile predict."""
    by_model = choosers.predictor(Profile.load(gpu))
    found: list[Prediction] = []
    for each in problems(gpu):
        for pick in each.picks:
            seconds = by_model(each.posed, pick)
            if seconds is not None:
                found.append(Prediction(each.posed, pick, seconds, each.mean(pick)))
    return tuple(found)


def worst(found: Iterable[Prediction]) -> Prediction:
    return max(found, key=lambda each: each.off)


def named(posed: Posed) -> str:
    """A problem in few words."""
    problem = posed.problem
    length = f"{problem.seq_kv}" if problem.seq_q == problem.seq_kv else f"{problem.seq_q} on {problem.seq_kv}"
    if posed.lengths:
        length = f"{len(posed.lengths)} packed of up to {max(posed.lengths)}"
    words = [f"{problem.batch} x {problem.heads_q} heads" if not posed.lengths else f"{problem.heads_q} heads"]
    if problem.heads_q != problem.heads_kv:
        words[0] += f" on {problem.heads_kv}"
    words += [length, f"d{problem.head_dim}", "causal" if problem.edges.right is not None else "full"]
    return ", ".join((*words, *sorted(posed.features - {"packed"})))


def tile(pick: Pick) -> str:
    """A configuration in few words: rows by keys, and whether Q stays in registers."""
    path, config = pick
    values = dict(config.values)
    if path == HOPPER:
        held = ", Q in registers" if values["q_in_registers"] else ""
        return f"{values['warpgroups']} warpgroups, {values['tile_keys']} keys{held}"
    return f"{values['warps']} warps, {values['tile_keys']} keys"


def source(*profiles: Profile) -> str:
    """Whose numbers a figure draws, for the line under it."""
    said = []
    for profile in profiles:
        numbers = campaigns(profile.gpu)
        days = [row.measured_utc[:10] for number in numbers for row in rows.read(profile.gpu, "a", number)[:1]]
        count = sum(len(each.picks) for each in problems(profile.gpu))
        said.append(
            f"data/campaigns/{profile.gpu}, {' and '.join(f'a-{each}' for each in numbers)} of "
            f"{' and '.join(dict.fromkeys(days))}: {count} configurations"
        )
    return f"Sources: {'; '.join(said)}."
