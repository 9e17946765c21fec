"""A choice predicts what may win and leaves the rest until somebody asks: pick, ties and candidates are the same."""

import math
import pickle
from dataclasses import fields, replace

import pytest

from attention.campaign.posed import parse
from attention.choose import candidates, learned
from attention.choose.candidates import legal, predicted
from attention.choose.choose import Choice, choose
from attention.choose.corrections import Corrections
from attention.choose.floor import floors
from attention.choose.lengths import presumed
from attention.choose.model import predict
from attention.problem import AttentionProblem
from attention.variant import Config, shipped
from microbench.machine.arch import by_name
from microbench.results.profile import Profile

# Timings of kernels whose text is newer do not count: fewer of them are as good here.
pytestmark = pytest.mark.filterwarnings("ignore::microbench.errors.DataWarning")
H200 = Profile.load("h200-sxm-141gb")
LINES = """
decode 1 88 11 1 20000 128 bf16
decode 1 8 1 1 20000 128 bf16
decode 3 64 8 4 3333 112 f16 alibi causal
decode 3 64 64 2 77777 256 bf16 bias
decode 4 64 8 1 8192 128 bf16 used=8192+3x100
short 1 3 3 20 3000 176 bf16
short 2 8 2 40 9000 128 bf16 causal window=1000
prefill 1 4 4 1024 8192 128 bf16
prefill 4 25 25 3001 3001 40 bf16
prefill 2 8 2 2500 5000 128 f16 causal window=700
prefill 4 10 10 4096 4096 192/128 bf16 causal
prefill 4 10 10 1000 1000 64/256 bf16
features 4 16 16 4095 4095 80 bf16 mask causal
features 4 16 4 2000 2000 256 bf16 softcap=20 sinks
packed 0 16 4 0 0 128 bf16 lengths=1+2+3+100+50
packed 0 32 8 0 0 80 bf16 causal lengths=3x400+100x20
"""
PROBLEMS = [parse(line).problem for line in LINES.strip().splitlines()]
each_problem = pytest.mark.parametrize("problem", PROBLEMS, ids=str)


def differ(mended: pytest.MonkeyPatch, times: float) -> list[str]:
    """The fields of choices that are not those of choices that predicted all, with floors so many times as high."""

    def all_times(*asked: object) -> list[float]:
        return [times * each for each in floors(*asked)]  # type: ignore[arg-type]

    found = []
    for problem in PROBLEMS:
        for only in (None, "smscope"):
            mended.setattr(candidates, "floors", lambda *asked: [0.0] * len(asked[3]))
            whole = choose(H200, problem, efficiencies=learned.of_machine(H200), only=only)
            mended.setattr(candidates, "floors", all_times)
            choice = choose(H200, problem, efficiencies=learned.of_machine(H200), only=only)
            for name in ("pick", "tied", *(each.name for each in fields(Choice))):
                if getattr(choice, name) != getattr(whole, name):
                    found.append(f"{problem}: {name}")
    return found


def test_a_choice_is_that_of_all_predictions(monkeypatch: pytest.MonkeyPatch) -> None:
    assert differ(monkeypatch, 1.0) == []


def test_floors_that_are_too_high_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    found = differ(monkeypatch, 100.0)
    assert any(each.endswith(": pick") for each in found) and not any("candidates" in each for each in found)


@each_problem
@pytest.mark.parametrize("gpu", ["h200-sxm-141gb", "h100-sxm-80gb"])
def test_no_prediction_is_below_its_floor(problem: AttentionProblem, gpu: str) -> None:
    profile = Profile.load(gpu)
    of_ours = [each for each in shipped("forward") if each.owner == "smscope"]
    found: list[tuple[float, float]] = []
    for variant, config in legal(problem, by_name(profile.arch), tuple(of_ours))[0]:
        least = floors(profile, problem, variant, (config,), presumed(problem))[0]
        found.append((least, predict(profile, problem, variant, config, None, presumed(problem)).seconds))
    assert found and all(0 < least < seconds for least, seconds in found)


def test_of_decoding_half_is_left_until_somebody_reads_the_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, asked = replace(PROBLEMS[0], heads_q=PROBLEMS[0].heads_kv), list[Config]()  # no rows are shared

    def counted(*given: object) -> object:
        asked.append(given[3])  # type: ignore[arg-type]
        return predict(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(candidates, "predict", counted)
    choice = choose(H200, problem, efficiencies=learned.of_machine(H200))
    few = len(asked)
    assert few <= len(choice.candidates) * 0.6 and len(asked) == len(choice.candidates)
    assert choice.candidates is choice.candidates and len(asked) == len(choice.candidates)
    allowed, _ = legal(problem, by_name(H200.arch), shipped("forward"))
    assert choice.candidates == predicted(H200, problem, allowed, learned.of_machine(H200), presumed(problem))
    seconds = [each.prediction.seconds if each.prediction else math.inf for each in choice.candidates]
    assert seconds == sorted(seconds)


@pytest.mark.parametrize("how", ["json", "pickle", "repr", "equality", "replace"])
def test_whoever_stores_or_compares_a_choice_has_all_of_it(how: str) -> None:
    choice, again = (choose(H200, PROBLEMS[0], efficiencies=Corrections()) for _ in range(2))
    told = {
        "json": lambda: Choice.from_json(choice.to_json()),
        "pickle": lambda: pickle.loads(pickle.dumps(choice)),
        "repr": lambda: again if repr(choice) == repr(again) else None,
        "equality": lambda: again if choice == again else None,
        "replace": lambda: replace(choice),
    }[how]()
    assert isinstance(told, Choice) and told == choice and told.candidates == choice.candidates
    with pytest.raises(AttributeError, match="no attribute 'candidate'"):
        choice.candidate  # type: ignore[attr-defined]  # noqa: B018


def test_where_the_profile_says_nothing_there_is_no_floor() -> None:
    bare = H200.model_copy(update={"constants": ()})
    for variant, config in legal(PROBLEMS[0], by_name(H200.arch), shipped("forward"))[0]:
        assert floors(bare, PROBLEMS[0], variant, (config,)) == [0.0]
