"""A campaign on a GPU that answers as a test scripts it: lines, budgets, resuming."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from attention.campaign import draw, freeze, plan, rows, set_a
from attention.campaign.freeze import Freeze
from attention.campaign.going_on import go_on
from attention.campaign.plan import Job
from attention.campaign.posed import Posed, parse
from attention.campaign.rows import TileTiming
from attention.kernels.launch.source import sources_of
from microbench.compile import Source
from microbench.errors import DataError, InputError
from microbench.files import put
from microbench.machine import nvml, stamp
from microbench.machine.arch import by_name
from microbench.measure import alternate
from microbench.results import derive
from smscope import campaigning, cli, regretting
from smscope.campaign_asked import asked_of
from tests.cpu.campaign_rows import AMPERE, GPU, HOPPER, ONE, OTHER, line, tile
from tests.cpu.commands import called
from tests.cpu.scripted_campaign import H200, SMALL, Scripted, campaign, machine_of_campaigns  # noqa: F401  a fixture


def test_a_line_is_read_as_it_was_written(data: Path) -> None:
    failed = tile(96).model_copy(update={"failure": "wrong: 3 above 1"})
    used = parse("decode 2 8 8 1 300 64 f16 used=300+17")
    assert (line(used).posed, rows.file_of(GPU, "floors", 1).name) == (used, "floors-1.jsonl")
    packed = parse("packed 0 8 8 0 0 64 f16 causal window=64 lengths=100+3x20")
    written = line(packed, tile(96, 1e-3, 2e-3), failed, freeze="f" * 40, campaign=2, set="b")
    file = rows.append(written)
    assert file == data / "campaigns" / GPU / "b-2.jsonl"
    assert rows.read(GPU, "b", 2) == (written,) and rows.campaigns(GPU, "b") == (2,) and rows.read(GPU, "a", 2) == ()
    assert rows.read(GPU, "b", 2)[0].posed == packed and rows.read(GPU, "b", 2)[0].tiles[0].median == 1.5e-3


def test_lines_are_appended_and_a_broken_one_is_named(data: Path) -> None:
    for posed in SMALL:
        file = rows.append(line(posed, tile(96, 1.0)))
    assert [row.posed for row in rows.read(GPU, "a", 1)] == [*SMALL]
    with file.open("a") as end:
        end.write('{"gpu":')
    with pytest.raises(DataError, match=r"a-1\.jsonl cannot be read"):
        rows.read(GPU, "a", 1)


def test_a_job_is_every_legal_configuration_of_every_kernel_of_ours() -> None:
    (job,) = plan.jobs([ONE], H200)
    serving = {each.path for each in plan.variants("sm90a") if not each.refuses(ONE.problem, by_name("sm90a"))}
    assert {variant.path for variant, _ in job.tiles} == serving >= {AMPERE, HOPPER}
    here = by_name("sm90a")
    codes = {source for variant, config in job.tiles for source in sources_of(variant, ONE.problem, config, here)}
    assert set(job.sources) == codes and len(codes) == len(job.sources) > 15
    assert job.estimate_s > plan.PROBLEM_S + 15 * plan.PREPARE_S


def test_a_problem_is_left_until_one_line_holds_each_of_its_configurations() -> None:
    every = plan.jobs(SMALL, H200)
    whole = line(ONE, *(TileTiming(variant=v.path, config=dict(c.values), failure="it was") for v, c in every[0].tiles))
    part = line(OTHER, *(TileTiming(variant=v.path, config=dict(c.values)) for v, c in every[1].tiles[1:]))
    assert plan.left(every, [whole, part]) == every[1:]


def test_the_order_of_problems_is_drawn_from_the_seed() -> None:
    every = plan.jobs(set_a.problems()[:12], H200)
    assert plan.ordered(every, "a 1") == plan.ordered(every, "a 1") != plan.ordered(every, "a 2")
    assert {*plan.ordered(every, "a 1")} == {*every}


@dataclass
class Clock:
    """Seconds that pass as they are told."""

    within: float
    now: float = 0.0
    compiled: list[Source] = field(default_factory=list)
    timed: list[Posed] = field(default_factory=list)

    def fits(self, seconds: float) -> bool:
        return self.now + seconds <= self.within

    def compile(self, sources: Sequence[Source]) -> None:
        self.compiled += sources
        self.now += 1.0

    def time(self, job: Job) -> None:
        self.timed.append(job.posed)
        self.now += job.estimate_s


@pytest.fixture
def cold(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache that holds no kernel."""
    monkeypatch.setattr(plan, "is_kept", lambda source: False)


def test_all_is_compiled_at_once_and_once_where_all_fits(cold: None) -> None:
    every, clock = plan.jobs(SMALL, H200), Clock(1e6)
    ended = go_on(every, clock.fits, clock.compile, clock.time)
    assert (ended.timed, ended.left) == (3, ()) and clock.timed == [*SMALL]
    assert len(clock.compiled) == len({*clock.compiled}) == len({s for job in every for s in job.sources})


def test_a_budget_takes_the_first_problems_with_their_kernels_and_leaves_the_rest(cold: None) -> None:
    every = plan.jobs(SMALL, H200)
    clock = Clock(plan.estimate(every[:2], {}).seconds + 0.1)
    ended = go_on(every, clock.fits, clock.compile, clock.time)
    assert clock.timed[:2] == [*SMALL[:2]] and ended.timed == len(clock.timed)
    assert {*clock.compiled} >= {*every[0].sources, *every[1].sources}
    # What was compiled sooner than was expected left time, which the third problem is welcome to.
    assert ended.left == every[ended.timed :]


def test_a_budget_that_holds_nothing_compiles_nothing(cold: None) -> None:
    every, clock = plan.jobs(SMALL, H200), Clock(0.5)
    assert go_on(every, clock.fits, clock.compile, clock.time).left == every and not clock.compiled


def test_a_campaign_is_timed_and_the_next_call_begins_another(
    gpu: Scripted, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = campaign(capsys, "--json")
    told = json.loads(out)
    assert (code, told["timed"], told["left"], told["failed"]) == (0, 3, 0, 0) and "0 of 3 done" in err
    assert "by the model's predictions" in err and gpu.compiled > 30
    lines = rows.read(GPU, "a", 1)
    assert {str(row.posed) for row in lines} == {*map(str, SMALL)}
    first = lines[0]
    assert first.flags == ("throttled:power-cap",) and first.seed.startswith("a 1 ") and first.driver == "580.1"
    assert first.texts == plan.texts("sm90a") and first.tiles[0].power_w == (600.0, None, 610.0)
    assert json.loads(campaign(capsys, "--json")[1])["campaign"] == 2
    assert rows.campaigns(GPU, "a") == (1, 2)
    # Orders are drawn anew: of problems by the campaign's number, of configurations by each problem's seed.
    assert len({*gpu.seeds}) == 6


def test_a_line_tells_how_the_timer_fills_the_l2(
    gpu: Scripted, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert campaigning.L2_READ is alternate.L2_READ is True
    monkeypatch.setattr(campaigning, "L2_READ", False)
    campaign(capsys)
    assert {row.l2_read for row in rows.read(GPU, "a", 1)} == {False}


def test_an_interrupted_campaign_goes_on_with_what_is_missing(
    gpu: Scripted, capsys: pytest.CaptureFixture[str]
) -> None:
    gpu.dies_after = 2
    code, _, err = campaign(capsys)
    assert code != 0 and "Interrupted" in err and len(rows.read(GPU, "a", 1)) == 2
    gpu.dies_after = None
    code, out, err = campaign(capsys, "--json")
    assert (code, json.loads(out)["timed"], json.loads(out)["campaign"]) == (0, 1, 1) and "2 of 3 done" in err
    assert sorted(gpu.timed) == sorted(map(str, SMALL)) and len(rows.read(GPU, "a", 1)) == 3


def test_a_campaign_of_other_kernels_is_another_campaign(gpu: Scripted, capsys: pytest.CaptureFixture[str]) -> None:
    gpu.dies_after = 1
    campaign(capsys)
    (only,) = rows.read(GPU, "a", 1)
    rows.file_of(GPU, "a", 1).write_text(
        only.model_copy(update={"texts": {**only.texts, "gone": "0"}}).model_dump_json(exclude_none=True) + "\n"
    )
    gpu.dies_after = None
    assert json.loads(campaign(capsys, "--json")[1])["campaign"] == 2
    code, _, err = campaign(capsys, "--number", "1")
    assert code == 2 and "of other kernels" in err


def test_a_budget_ends_a_call_cleanly(gpu: Scripted, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = campaign(capsys, "--budget", "1s")
    assert code == 2 and "holds no problem" in err and rows.read(GPU, "a", 1) == ()


def test_a_wrong_configuration_is_on_file_and_the_exit_code_says_so(
    gpu: Scripted, capsys: pytest.CaptureFixture[str]
) -> None:
    gpu.failure = "wrong: error 3 above 1"
    code, out, _ = campaign(capsys)
    assert code == 1 and "wrong: error 3 above 1" in out
    assert all(each.failure for row in rows.read(GPU, "a", 1) for each in row.tiles)


def test_the_model_is_judged_by_two_campaigns(gpu: Scripted, capsys: pytest.CaptureFixture[str]) -> None:
    derive.write(H200)
    campaign(capsys)
    code, _, err = called(capsys, cli.main, "regret", GPU)
    assert code == 2 and "needs two campaigns" in err
    campaign(capsys)
    code, out, _ = called(capsys, cli.main, "regret", GPU, "--brief", "--json")
    every, *each = json.loads(out)
    assert code == 1 and every["problems"] == 3 and every["floor"]["mean"] == 0 and every["faults"]
    split = ["sm80/forward/split_keys", "sm90a/forward/split_keys"]
    assert [one["kernels"] for one in each] == ["sm80", "sm90a", AMPERE, *split, HOPPER]
    assert {one["kernels"]: one["problems"] for one in each}[HOPPER] == 3
    assert "measured constants" in called(capsys, cli.main, "regret", GPU, "--brief")[1]


def test_from_a_freeze_to_its_verdict(
    gpu: Scripted, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    derive.write(H200)
    frozen = Freeze(gpu=GPU, commit="ab" * 20, hashes=freeze.hashes_of(stamp.ROOT, GPU))
    put(rows.file_of(GPU, "a", 1).parents[1] / "freeze-abababababab.json", frozen.model_dump_json())
    for which in ("a", "b", "a", "b"):
        told = json.loads(campaign(capsys, "--set", which, "--json")[1])
        assert told["left"] == 0 and told["timed"] == (
            len(SMALL) if which == "a" else len(draw.drawn("ab" * 20, SMALL))
        )
    assert rows.campaigns(GPU, "a") == rows.campaigns(GPU, "b") == (1, 2)
    lines = rows.read(GPU, "b", 2)
    assert {row.freeze for row in lines} == {frozen.commit}
    assert {str(row.posed) for row in lines} == {*map(str, draw.drawn(frozen.commit, SMALL))}
    code, out, err = called(capsys, cli.main, "regret", GPU, "--set", "b", "--write")
    (verdict,) = freeze.verdicts()
    assert code == 1 and "Wrote" in err and "floor" in out  # made-up seconds bear no model out
    found, numbers = regretting.tables(GPU, frozen)
    assert (verdict.lines, verdict.campaigns, verdict.hashes) == (regretting.lines_of(found), numbers, frozen.hashes)
    assert any("fault" in each for each in verdict.lines) and any("doubled" in each for each in verdict.lines)


def test_set_b_is_timed_of_the_frozen_model_alone(gpu: Scripted, capsys: pytest.CaptureFixture[str]) -> None:
    frozen = Freeze(gpu=GPU, commit="ab" * 20, hashes={"attention/choose/model.py": "another"})
    put(rows.file_of(GPU, "a", 1).parents[1] / "freeze-abababababab.json", frozen.model_dump_json())
    code, _, err = campaign(capsys, "--set", "b")
    assert code == 2 and "Since the freeze" in err and gpu.timed == []


def test_of_several_freezes_that_of_todays_model_is_meant(data: Path) -> None:
    today, other = freeze.hashes_of(stamp.ROOT, GPU), {"attention/choose/model.py": "another"}

    def write(commit: str, hashes: dict[str, str]) -> None:
        frozen = Freeze(gpu=GPU, commit=commit, hashes=hashes)
        put(data / "campaigns" / f"freeze-{frozen.short}.json", frozen.model_dump_json())

    for commit, hashes in (("ab" * 20, other), ("cd" * 20, today), ("ef" * 20, other)):
        write(commit, hashes)
    found = asked_of("b", None, ()).frozen
    assert found is not None and found.commit == "cd" * 20
    write("cd" * 20, other)
    with pytest.raises(InputError, match="there are: abababababab, cdcdcdcdcdcd, efefefefefef"):
        asked_of("b", None, ())


def test_a_plan_needs_no_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = campaign(capsys, "--plan", "--gpu", GPU, "--json")
    told = json.loads(out)
    assert code == 0 and told["problems"] == len(set_a.problems()) and told["configurations"] > 1000


def test_kernels_are_compiled_ahead_without_a_gpu(gpu: Scripted, capsys: pytest.CaptureFixture[str]) -> None:
    derive.write(H200)
    code, out, _ = campaign(capsys, "--ahead", "--gpu", GPU, "--json")
    assert code == 0 and gpu.compiled == json.loads(out)["kernels_to_compile"] > 30 and gpu.timed == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--set", "c"), "no set 'c'; use a, b, floors or use"),
        (("--without", "peer/torch_flash"), "with --set floors and --set use alone"),
        (("--of", "abc"), "set a is typed"),
        (("--set", "use"), "Set use is drawn from a freeze"),
        (("--set", "b"), "drawn from a freeze"),
        (("--gpu", GPU), "--gpu is of --plan and --ahead"),
        (("--budget", "soon"), "is no time"),
        (("--freeze", "nowhere"), "no profile of nowhere"),
    ],
)
def test_what_makes_no_sense_is_refused(
    data: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    code, out, err = campaign(capsys, *arguments)
    assert (code, out) == (2, "") and said in err


def test_a_machine_without_a_gpu_says_so(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "visible_gpus", list)
    code, _, err = campaign(capsys)
    assert code == 2 and "no NVIDIA GPU to time kernels on" in err
