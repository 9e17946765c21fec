"""`smscope`: one command and one import for both packages, and what stands in the way of either."""

import errno
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import typer

import attention
import microbench
import smscope
from attention import cli as attention_cli
from attention.variant import shipped
from attention.verify.build_matrix import AttentionRow
from microbench.machine import nvml
from microbench.probes import discover
from microbench.verify import matrix, tables
from smscope import cli, verbs
from tests.cpu import fake_probes
from tests.cpu.commands import called
from tests.elsewhere import ROOT, printed, python

VERBS = [verb for section in cli.SECTIONS.values() for verb in section]
PACKAGES = ("attention", "microbench")
HEAVY = ("torch", "cupy", "numba", "pandas", "numpy")


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    return called(capsys, cli.main, *arguments)


def loaded_by(code: str, *names: str) -> list[str]:
    told = printed(f"{code}\nimport sys, json; print(json.dumps([n for n in {names!r} if n in sys.modules]))", cwd=ROOT)
    return list(json.loads(told.splitlines()[-1]))


def test_it_hands_on_every_public_name_of_both_packages():
    assert set(smscope.__all__) == {*attention.__all__, *microbench.__all__}
    assert not set(attention.__all__) & set(microbench.__all__)
    for package in (attention, microbench):
        for name in package.__all__:
            assert getattr(smscope, name) is getattr(package, name)
    assert {*smscope.__all__} <= {*dir(smscope)}
    with pytest.raises(AttributeError, match="'smscope' has no attribute 'sdpaa'"):
        _ = smscope.sdpaa


def test_importing_it_loads_neither_package_and_a_name_without_torch_loads_no_torch():
    assert loaded_by("import smscope", *PACKAGES, *HEAVY) == []
    assert loaded_by("import smscope; smscope.Profile", "torch", "cupy", "attention") == []
    assert loaded_by("import smscope; smscope.explain, smscope.AttentionProblem", "torch", "cupy") == []


def test_help_and_the_completion_of_a_verb_load_no_verb():
    code = "import os, sys\nfrom smscope import cli\ntry: cli.main({0})\nexcept SystemExit: pass"
    assert loaded_by(code.format("['--help']"), *PACKAGES, *HEAVY) == []
    completes = (
        "os.environ.update(COMP_WORDS='smscope ex', COMP_CWORD='1', _SMSCOPE_COMPLETE='complete_bash')\ntry: cli"
    )
    assert loaded_by(code.format("").replace("try: cli", completes), *PACKAGES, *HEAVY) == []


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("smscope be", "bench bench-attention"),
        ("smscope check --la", "--latencies"),
        ("smscope explain --sh", "--shape"),
    ],
)
def test_the_shell_completes_verbs_and_options(typed, offered):
    asked = {"COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" ")), "_SMSCOPE_COMPLETE": "complete_bash"}
    told = python("-m", "smscope", cwd=ROOT, **asked).stdout.split()
    # Profiles of the reader's own may be offered too.
    assert {*offered.split()} <= {*told} and all(each.startswith(typed.split()[-1]) for each in told)


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: str(verb.name))
def test_every_verb_explains_itself_and_takes_json(capsys, verb):
    code, out, err = call(capsys, verb.name, "--help")
    assert (code, err) == (0, "")
    assert f"smscope {verb.name} [OPTIONS]" in out and "--json" in out


def test_the_help_names_every_verb_on_one_line_of_80_columns():
    told = python("-m", "smscope", "--help", cwd=ROOT).stdout
    assert max(map(len, told.splitlines())) <= 80
    for verb in VERBS:
        assert re.search(rf"^  {verb.name} +{re.escape(verb.help)}$", told, re.MULTILINE)


def test_every_verb_of_both_packages_is_a_verb_of_smscope():
    from microbench import cli as microbench_cli

    reached = {(verb.module, verb.command or verb.name) for verb in VERBS}
    for module, app in (("microbench.cli", microbench_cli.app), ("attention.cli", attention_cli.app)):
        for name in typer.main.get_command(app).commands:  # type: ignore[attr-defined]
            assert (module, name) in reached or ("smscope.verbs", name) in reached


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("show", "b42"), 2, "No profile is called 'b42'"),
        (("explain", "--shape", "eight"), 2, "six or seven whole numbers"),
        (("check", "--arch", "sm42"), 2, "No architecture is called 'sm42'"),
        (("check", "--only", "ffma_latency", "--all"), 2, "--all selects attention kernels"),
        (("check", "--write", "--arch", "sm80"), 2, "leave out --arch and --all, or --write"),
        (("shwo",), 2, "Did you mean 'show'?"),
        (("bench", "--device", "tpu"), 2, "No device is called 'tpu'"),
    ],
)
def test_an_error_is_as_it_is_of_each_package(data, capsys, arguments, code, said):
    ended, out, err = call(capsys, *arguments)
    assert (ended, out) == (code, "")
    assert said in err


def test_bench_measures_and_then_says_the_picks(data, tmp_path, capsys):
    probes = fake_probes.write(tmp_path, "steady")
    asked = ("--device", "host", "--only", "steady", "--campaigns", "1", "--retries", "0", "--probes", str(probes))
    code, out, _ = call(capsys, "bench", *asked, "--json")
    told = json.loads(out)
    assert code == 0
    assert told["run"]["records"] == {"ok": 3}
    assert [pick["choice"]["gpu"] for pick in told["picks"]] == [told["run"]["gpu"]] * 3
    code, out, _ = call(capsys, "bench", *asked)
    assert code == 0
    assert out.index("steady_cycles") < out.index("The attention kernels that this profile picks")


def test_bench_takes_every_option_of_run():
    bench, run = (
        {name for parameter in typer.main.get_command(app).commands[verb].params for name in parameter.opts}  # type: ignore[attr-defined]
        for app, verb in ((verbs.app, "bench"), (__import__("microbench.cli").cli.app, "run"))
    )
    assert bench == run


def test_bench_that_measures_nothing_says_no_picks(data, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(attention_cli.picks, "picks", lambda *_, **__: pytest.fail("there is nothing to pick by"))
    probes = fake_probes.write(tmp_path, "gpu_only")
    asked = ("--device", "host", "--only", "gpu_only", "--campaigns", "1", "--retries", "0", "--probes", str(probes))
    code, out, _ = call(capsys, "bench", *asked, "--json")
    assert (code, [*json.loads(out)["unsupported"]]) == (1, ["gpu_only"])


def test_the_picks_are_of_the_gpu_that_was_measured(monkeypatch):
    gpus = [nvml.Gpu(index, name, 80 << 30, (9, 0), False) for index, name in enumerate(("H100 PCIe", "H200 NVL"))]
    monkeypatch.setattr(nvml, "visible_gpus", lambda: gpus)
    slugs = {None: None, "host": "host", "cuda": gpus[0].slug, "cuda:1": gpus[1].slug, "cuda:7": None}
    assert {device: verbs._slug(device) for device in slugs} == slugs


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[matrix.Job]:
    """The jobs that `check` was to compile; every one keeps its rules, but those of the kernel 'broken'."""
    jobs: list[matrix.Job] = []

    def run(todo: list[matrix.Job]) -> list[matrix.Checked]:
        jobs.extend(todo)
        return [matrix.Checked(j.kernel, j.arch, j.build, ("spills",) if j.kernel == "broken" else ()) for j in todo]

    monkeypatch.setattr(matrix, "run", run)
    return jobs


def test_check_compiles_the_kernels_of_both_packages(capsys, compiled, monkeypatch):
    code, out, _ = call(capsys, "check", "--arch", "sm90a", "--json")
    kernels = {row["kernel"].split()[0] for row in json.loads(out)}
    assert (code, {job.arch for job in compiled}) == (0, {"sm90a"})
    assert {"ffma_latency", "sm90a/forward/warp_specialised"} <= kernels
    compiled.clear()
    assert call(capsys, "check", "--only", "ffma_latency", "--json")[0] == 0
    assert {job.kernel for job in compiled} == {"ffma_latency"}
    compiled.clear()
    assert call(capsys, "check-attention", "--arch", "sm90a", "--json")[0] == 0
    assert {job.kernel.split("/")[0] for job in compiled} == {"sm80", "sm90a"}
    monkeypatch.setattr(verbs.build_matrix, "jobs", lambda **_: [replace(compiled[0], kernel="broken")])
    code, out, _ = call(capsys, "check", "--arch", "sm90a")
    assert code == 1 and "1 broken" in out


@pytest.fixture
def verification(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty data/verification of the checkout."""
    monkeypatch.setattr(tables.paths, "SHIPPED", tmp_path)
    return tmp_path / "verification"


def test_check_write_writes_a_table_of_each_probe_and_each_kernel(capsys, compiled, verification):
    (verification / "probes").mkdir(parents=True)
    (verification / "probes" / "gone.csv").write_text("of a probe that there was\n")
    code, _, said = call(capsys, "check", "--write", "--json")
    assert code == 0 and "tables in data/verification/probes" in said
    probes = {file.stem for file in (verification / "probes").iterdir()}
    assert probes == {probe.name for probe in discover() if probe.builds is not None}
    assert probes >= {"ffma_latency"} and "gone" not in probes
    kernels = {file.stem for file in (verification / "kernels").iterdir()}
    assert kernels == {variant.path.replace("/", "-") for variant in shipped() if variant.builds}
    assert {row.kernel for row in tables.read_all(tables.BuildRow)} == probes
    for file in (verification / "kernels").iterdir():
        (path,) = {row.kernel.split()[0] for row in tables.read_all(AttentionRow) if stem_of(row) == file.stem}
        assert path.replace("/", "-") == file.stem


def stem_of(row: AttentionRow) -> str:
    return tables.stem(row.kernel)


def test_a_new_probe_adds_its_table_and_touches_no_other(capsys, compiled, verification):
    other = verification / "probes" / "smem_latency.csv"
    other.parent.mkdir(parents=True)
    other.write_text("of another probe\n")
    code, _, said = call(capsys, "check", "--only", "ffma_latency", "--write", "--json")
    assert (code, said.splitlines()[-1]) == (0, "Wrote ffma_latency.csv in data/verification/probes.")
    assert {file.name for file in verification.rglob("*.csv")} == {"ffma_latency.csv", "smem_latency.csv"}
    assert other.read_text() == "of another probe\n"


def test_test_gpu_without_a_gpu_says_why_and_runs_nothing(capsys, monkeypatch):
    monkeypatch.setattr(nvml, "visible_gpus", list)
    monkeypatch.setattr(nvml, "why_no_gpu", lambda: "the driver shows none")
    code, out, err = call(capsys, "test-gpu")
    assert (code, out, err) == (2, "", "There is no NVIDIA GPU to test here (the driver shows none).\n")


def test_test_gpu_in_a_checkout_runs_the_tests_of_the_mark_gpu(tmp_path, capfd, monkeypatch):
    (tmp_path / "tests" / "gpu").mkdir(parents=True)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = gpu: one\n")
    test = "import pytest\n@pytest.mark.gpu\ndef test_it(): assert {}\ndef test_another(): assert False\n"
    monkeypatch.setattr(nvml, "visible_gpus", lambda: ["a GPU"])
    monkeypatch.setattr(verbs.paths, "CHECKOUT", tmp_path)
    for passes, code in ((True, 0), (False, 1)):
        (tmp_path / "tests" / "gpu" / "test_one.py").write_text(test.format(passes))
        with pytest.raises(SystemExit) as ended:
            cli.main(["test-gpu", "--json"])
        told = json.loads(capfd.readouterr().out)
        assert (ended.value.code or 0) == code and (told["tests"], told["failures"]) == (1, code)


def test_test_gpu_of_an_installed_package_verifies_it(capsys, monkeypatch):
    asked = []
    monkeypatch.setattr(nvml, "visible_gpus", lambda: ["a GPU"])
    monkeypatch.setattr(verbs.paths, "CHECKOUT", None)
    monkeypatch.setattr(verbs.verifying, "verify", lambda **options: asked.append(options))
    code, _, err = call(capsys, "test-gpu", "--json")
    assert (code, asked) == (0, [{"quick": True, "json": True}]) and "are in a checkout" in err
    assert call(capsys, "test-gpu", "--", "-k", "forward")[0] == 2 and len(asked) == 1


def test_a_file_beside_the_user_is_not_what_a_worker_imports(tmp_path):
    """An installed command does not search the folder it is started in, and its worker processes must not either."""
    probes, here = tmp_path / "probes", tmp_path / "here"
    here.mkdir()
    probes.mkdir()
    fake_probes.write(probes, "steady")
    for name in ("microbench", "attention", "json"):
        (here / f"{name}.py").write_text("raise SystemExit('this must not run')\n")
    code = (
        "from pathlib import Path; from microbench import paths; from smscope import cli; "
        f"paths.writable_data = lambda: Path({str(tmp_path)!r}); paths.data_roots = lambda: [paths.writable_data()]; "
        "cli.main(['run', '--device', 'host', '--campaigns', '1', '--retries', '0', "
        f"'--only', 'steady', '--probes', {str(probes)!r}])"
    )
    told = python("-P", "-c", code, cwd=here, PYTHONPATH=str(ROOT))  # -P: as an installed command is started
    assert told.returncode == 0, told.stderr
    assert "3 ok" in told.stdout


@pytest.mark.parametrize("arguments", [("list",), ("list", "--json")])
def test_output_without_room_is_one_sentence(arguments: tuple[str, ...]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "smscope", *arguments], cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 1
    assert done.stderr == (
        "What smscope has to say cannot be written: No space left on device; give its output more room.\n"
    )


def test_a_disk_that_is_full_is_no_matter_of_the_output(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "profile.json")

    monkeypatch.setattr(cli, "app", full)
    with pytest.raises(OSError, match="profile"):
        cli.main([])
