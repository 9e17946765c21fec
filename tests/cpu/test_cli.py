"""microbench.cli: what a person types, what comes back, and with which exit code."""

import json
import shutil
from pathlib import Path

import pytest

from microbench import paths
from microbench.cli import main, measuring
from microbench.machine import arch
from microbench.probes import discover
from microbench.results import derive, record
from microbench.results.profile import Profile
from microbench.results.profile_constant import ProfileConstant
from microbench.verify import matrix
from tests.cpu import fake_probes
from tests.cpu.commands import called
from tests.elsewhere import ROOT, python

# This machine may be busy, and then its flags stand beside those of the fake probes.
QUIET = ("--retries", "0")


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    return called(capsys, main, *arguments)


def constant(name: str, value: float, **more: object) -> ProfileConstant:
    fields = {"low": value, "high": value, "unit": "cycles", "n": 6, "runs": ("r1",), "probe": "p", "method": "nvrtc"}
    return ProfileConstant.model_validate({"name": name, "value": value, **fields, **more})


def save(gpu: str, *constants: ProfileConstant, arch_name: str = "sm90a") -> Profile:
    profile = Profile(gpu=gpu, name=gpu.upper(), arch=arch_name, sm_count=132, constants=constants)
    derive.write(profile)
    return profile


def test_a_probe_added_as_two_files_is_listed_run_and_in_the_profile(data, tmp_path, capsys):
    """The table 'how much a change touches': a new probe is two new files, and no edited one."""
    here = ("--probes", str(fake_probes.write(tmp_path, "steady")))

    code, out, _ = call(capsys, "list", "--json", *here)
    (listed,) = (probe for probe in json.loads(out) if probe["probe"] == "steady")
    assert code == 0
    said = {"family": "fake", "asks": "Is it steady?", "archs": ["host"], "second_method": False}
    assert listed == {"probe": "steady"} | said

    code, out, _ = call(
        capsys, "run", "--device", "host", "--only", "steady", "--campaigns", "1", *QUIET, "--json", *here
    )
    told = json.loads(out.splitlines()[-1])
    assert (code, told["records"], told["failed"], told["constants"]) == (0, {"ok": 3}, [], 2)

    code, out, _ = call(capsys, "profile", told["gpu"], "--json", *here)
    (written,) = json.loads(out)
    assert (code, written["gpu"], written["constants"]) == (0, told["gpu"], 2)
    code, out, _ = call(capsys, "show", told["gpu"], "--json")
    values = {constant["name"]: constant["value"] for constant in json.loads(out)["constants"]}
    assert (code, values) == (0, {"steady_cycles": 5.0, "steady_far_cycles": 7.0})


def test_a_quick_run_says_so_in_its_table_and_skips_points(data, tmp_path, capsys):
    fake_probes.write(tmp_path, "steady", "gpu_only")
    only = ("--only", "steady", "--only", "gpu_only", "--probes", str(tmp_path))
    code, out, err = call(capsys, "run", "--device", "host", "--quick", *QUIET, *only)
    assert code == 0
    assert "quick run, only 2 campaigns" in out and "unsupported, 1 row: needs an NVIDIA GPU" in out
    assert "steady_far_cycles, from steady: 0 points match" in out
    assert "Measuring host" in err


def test_a_machine_that_stays_busy_is_given_up_and_says_so(data, tmp_path, capsys):
    here = ("--only", "always_busy", "--probes", str(fake_probes.write(tmp_path, "always_busy")))
    code, out, _ = call(capsys, "run", "--device", "host", "--campaigns", "1", "--retries", "1", *here)
    said = "In doubt: never_quiet_cycles: measured while"
    assert code == 0
    assert said in out and "\n?: in doubt, so no pick uses it.\n" in out
    (gpu,) = derive.gpus()
    assert f"smscope show {gpu}\n" in out
    code, out, _ = call(capsys, "show", gpu)
    assert code == 0 and "\n?: in doubt, so no pick uses it.\n" in out
    assert said in out and "the hypervisor gave its cores to others." in out and "[9.00, 9.00] of 2 ?" in out
    (run,) = (record.read(file) for file in record.run_files(gpu))
    assert [(row.campaign, row.value) for row in run.records] == [(0, 9.0), (1, 9.0)], "the first try is kept"


def test_a_cpu_is_not_told_of_gpu_probes_nor_of_what_nobody_published(data, tmp_path, capsys, monkeypatch):
    fake_probes.write(tmp_path, "steady", "gpu_only")
    mine = tuple(probe for probe in discover(tmp_path) if probe.name in ("steady", "gpu_only"))
    monkeypatch.setattr(measuring, "discover", lambda *_: mine)
    code, out, _ = call(capsys, "run", "--device", "host", "--campaigns", "1", *QUIET, "--probes", str(tmp_path))
    assert code == 0
    assert "steady_cycles" in out and "GPU" not in out and "published" not in out
    assert max(len(line.rstrip()) for line in out.splitlines() if "/" not in line) <= 80
    (file,) = data.glob("runs/*/*.jsonl")
    assert f"Run:     {file}\n" in out and "\nProfile: " in out


def test_one_failed_row_passes_and_nothing_measured_does_not(data, tmp_path, capsys):
    fake_probes.write(tmp_path, "steady", "raises")
    run = ("run", "--device", "host", "--campaigns", "1", *QUIET, "--probes", str(tmp_path), "--json")
    code, out, _ = call(capsys, *run, "--only", "raises", "--only", "steady")
    assert (code, json.loads(out)["records"]) == (0, {"ok": 3, "failed": 1})
    code, out, err = call(capsys, *run, "--only", "raises")
    assert (code, json.loads(out)["records"]) == (1, {"failed": 1})
    assert "Nothing could be measured" in err


@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
def test_where_nothing_can_be_measured_the_reason_is_said_and_no_file_kept(data, tmp_path, capsys, as_json):
    fake_probes.write(tmp_path, "gpu_only")
    run = ("run", "--device", "host", "--campaigns", "1", "--probes", str(tmp_path), "--only", "gpu_only")
    code, out, err = call(capsys, *run, *(["--json"] if as_json else []))
    assert code == 1
    assert "needs an NVIDIA GPU" in out
    assert "so no run was kept" in err
    assert "quantity" not in out
    assert derive.gpus() == []


def test_the_profile_of_host_is_derived_from_this_cpus_runs(data, tmp_path, capsys):
    here = ("--probes", str(fake_probes.write(tmp_path, "steady")))
    _, out, _ = call(capsys, "run", "--device", "host", "--only", "steady", "--campaigns", "1", "--json", *here)
    code, derived, _ = call(capsys, "profile", "host", "--json", *here)
    assert (code, json.loads(derived)[0]["gpu"]) == (0, json.loads(out)["gpu"])


def test_a_corrupt_profile_does_not_take_the_others_reports(data, tmp_path, capsys):
    save("whole", constant("a_cycles", 10.0))
    (data / "profiles" / "broken.json").write_text('{"gpu": "broken"}')
    code, out, err = call(capsys, "report", "--output", str(tmp_path), "--json")
    assert (code, [one["gpu"] for one in json.loads(out)]) == (1, ["whole"])
    assert err.startswith("broken.json is no readable profile") and err.count("no readable profile") == 1


def test_an_unusable_cache_is_one_sentence_before_anything_is_compiled(tmp_path, capsys, monkeypatch):
    (tmp_path / "cache").touch()
    monkeypatch.setenv(paths.CACHE_VARIABLE, str(tmp_path / "cache"))
    code, out, err = call(capsys, "check", "--json")
    assert (code, out, err.count("\n")) == (1, "", 1) and "cubin cache cannot be used" in err


def test_a_kernel_that_does_not_compile_is_no_broken_contract(capsys, monkeypatch):
    rows = [
        matrix.Checked("p", "sm80", "N=1", ("NVRTC is not installed",), compiled=False),
        matrix.Checked("p", "sm80", "N=2", ("NVRTC is not installed",), compiled=False),
        matrix.Checked("p", "sm80", "N=3", ("0 FADD where 1 are declared",)),
    ]
    monkeypatch.setattr(matrix, "run", lambda *_: rows)
    code, out, _ = call(capsys, "check", "--arch", "sm80")
    assert code == 1
    assert "1 broken, 2 not compiled" in out and out.count("NVRTC is not installed") == 1
    _, out, _ = call(capsys, "check", "--arch", "sm80", "--json")
    assert [row["compiled"] for row in json.loads(out)] == [False, False, True]


@pytest.mark.parametrize("package", ["microbench", "attention"])
def test_a_python_without_the_dependencies_is_told_so_in_one_sentence(package):
    ended = python("-S", "-m", package, "list", cwd=ROOT)  # -S: no site-packages
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (1, "", 1)
    assert ended.stderr.startswith("This Python lacks ") and "make bench" in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("show", "b42"), "No profile is called 'b42'"),
        (("show", "v100"), "v100 is a published profile, of what others measured"),
        (("compare", "B200", "--published"), "`smscope explain --gpu b200` reads it"),
        (("compare", "b42", "--published"), "No profile is called 'b42'"),
        (("report", "b42"), "No profile is called 'b42'"),
        (("profile", "b42"), "There is no run of 'b42'"),
        (("run", "--only", "dram_latenzy"), "No probe is called 'dram_latenzy'"),
        (("run", "--device", "cuda:99"), "is not here"),
        (("run", "--device", "tpu"), "No device is called 'tpu'"),
        (("check", "--arch", "sm42"), "No architecture is called 'sm42'"),
        (("compare", "b42"), "No profile is called 'b42'"),
        (("list", "--probes", "nowhere"), "No probe lies under nowhere/"),
        (("run", "--campaigns", "0"), "campaigns"),
        (("sing",), "sing"),
    ],
)
@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
def test_a_name_that_does_not_exist_is_one_sentence_and_exit_code_2(data, capsys, arguments, said, as_json):
    code, out, err = call(capsys, *arguments, *(["--json"] if as_json else []))
    assert (code, out) == (2, "")
    assert said in err and "Traceback" not in err


def test_two_machines_are_compared_constant_by_constant(data, capsys):
    save("one", constant("a_cycles", 10.0), constant("b_cycles", 10.0, low=9.0, high=11.0), constant("c_cycles", 1.0))
    save("two", constant("a_cycles", 20.0), constant("b_cycles", 10.5, low=10.4, high=12.0), constant("d_cycles", 1.0))
    code, out, _ = call(capsys, "compare", "one", "two", "--json")
    told = json.loads(out)
    rows = {row["constant"]: (row["ratio"], row["standing"]) for row in told["pairs"]}
    assert code == 1, "something is slower"
    assert rows == {
        "a_cycles": (2.0, "SLOWER"),
        "b_cycles": (1.05, "AMBIGUOUS"),
        "c_cycles": (None, "ONLY HERE"),
        "d_cycles": (None, "ONLY THERE"),
    }
    assert told["counts"] == {"SLOWER": 1, "AMBIGUOUS": 1, "ONLY HERE": 1, "ONLY THERE": 1}
    assert call(capsys, "compare", "one", "one")[0] == 0


@pytest.mark.parametrize(("cycles", "verdict"), [(32.5, "agrees"), (68.0, "disagrees")])
def test_the_literature_gives_a_verdict_per_constant(data, capsys, cycles, verdict):
    save("h100-sxm-80gb", constant("l1_latency_cycles", cycles))
    code, out, _ = call(capsys, "compare", "h100-sxm-80gb", "--published", "--json")
    assert (code, [row["verdict"] for row in json.loads(out)]) == (0, [verdict])


@pytest.mark.parametrize(("second", "code"), [(101.0, 0), (104.0, 1)])
def test_two_methods_must_agree_within_3_percent(data, capsys, second, code):
    save("one", constant("a_cycles", 100.0), constant("a_cycles_numba", second, method="numba"))
    ended, out, _ = call(capsys, "check", "one", "--json")
    (row,) = json.loads(out)
    assert (ended, row["agrees"], row["deviation"]) == (code, code == 0, pytest.approx(second / 100 - 1))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("compare", "one", "--published"), "No source publishes a constant of one: there is nothing to compare; "),
        (("check", "one"), "No constant of one was measured by two methods: there is nothing to check; "),
    ],
)
def test_nothing_to_compare_or_to_check_is_one_sentence_and_no_empty_table(data, capsys, arguments, said):
    save("one", constant("a_cycles", 10.0))
    code, out, _ = call(capsys, *arguments)
    assert code == 0 and " ".join(out.split()).startswith(said) and out.rstrip().endswith(".") and "┃" not in out
    told = json.loads(call(capsys, *arguments, "--json")[1])
    assert {row["verdict"] for row in told} <= {"no published value"}


def test_every_distinct_build_of_every_point_is_checked_once_per_architecture():
    from microbench.probes import discover

    probes = [probe for probe in discover() if probe.builds is not None]
    jobs = matrix.jobs(probes)
    assert {job.kernel for job in jobs} == {probe.name for probe in probes} and len(set(jobs)) == len(jobs)
    assert {job.arch for job in matrix.jobs(probes, ["sm80"])} == {"sm80"}
    for probe in probes:
        builds = matrix.builds(probe, arch.by_name(probe.archs[-1]))
        assert len(set(builds)) == len(builds) >= 1


def test_the_table_of_a_machine_and_its_page_with_a_figure_inside(data, tmp_path, capsys):
    save(
        "h100-sxm-80gb",
        constant("l1_latency_cycles", 32.5),
        constant("dram_bandwidth_bytes_per_s", 3e12, unit="B/s", bound_upper=3.35e12),
    )
    code, out, _ = call(capsys, "show", "h100-sxm-80gb")
    assert code == 0
    assert "l1_latency_cycles" in out
    code, out, _ = call(capsys, "report", "h100-sxm-80gb", "--output", str(tmp_path / "out"), "--json")
    (told,) = json.loads(out)
    assert code == 0
    page = Path(told["page"]).read_text()
    _, out, _ = call(capsys, "report", "h100-sxm-80gb", "--output", str(tmp_path / "new"))
    assert f"Made the folder {tmp_path / 'new'}." in "".join(out.splitlines())
    assert "l1_latency_cycles" in page and (told["figures"], page.count("data:image/svg+xml;base64,")) == (1, 1)


def digits(file: Path) -> object:
    return json.loads(file.read_text(), parse_float=lambda text: f"{float(text):.12g}")


def test_profiles_of_this_checkout_follow_from_its_runs(data):
    """`make profile` changes nothing but last digits, which a CPU decides: a slope is fitted by LAPACK."""
    from microbench.probes import discover

    profiles = sorted((paths.SHIPPED / "profiles").glob("*.json"))
    assert profiles, "no profile is committed; run `make bench`"
    shutil.copytree(paths.SHIPPED / "runs", data / "runs", dirs_exist_ok=True)
    for profile in profiles:
        again = derive.write(derive.derive(profile.stem, discover()).profile)
        assert digits(again) == digits(profile), f"{profile.name} is stale; run `make profile`"
