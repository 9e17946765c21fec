from dataclasses import replace

import pytest
from pydantic import ValidationError

from attention.choose import learned
from attention.choose.corrections import Corrections
from attention.choose.model import predict
from attention.compare import bench
from attention.problem import AttentionProblem
from attention.timed import identity, timings
from attention.variant import Config, by_path
from microbench import paths
from microbench.machine.cpu import host_slug
from microbench.measure import turns
from tests.cpu.attention_profiles import host_profile
from tests.cpu.timing_rows import made_up

OURS = "host/forward/tiled_online_softmax"
LONG_F32 = f"{OURS} float32 many queries"
TILE = {"block_q": 64, "block_kv": 64}


def timing(seconds, variant=OURS, **changes):
    config, text = TILE if variant == OURS else {}, identity.text_sha256(variant)
    return made_up(seconds, variant, **({"config": config, "threads": 4, "source_sha256": text} | changes))


def test_a_timing_survives_the_file(data):
    path = timings.write(timing(0.01))
    timings.write(timing(0.02))
    assert path == data / "attention" / "host-test-4c.jsonl"
    found, problems = timings.read("host-test-4c")
    assert [each.seconds for each in found] == [0.01, 0.02] and not problems


def test_a_corrupt_line_is_named_and_the_rest_loads(data):
    path = timings.write(timing(0.01))
    with path.open("a") as file:
        file.write('{"gpu": "half\n')
    timings.write(timing(0.03))
    found, problems = timings.read("host-test-4c")
    assert [each.seconds for each in found] == [0.01, 0.03]
    assert len(problems) == 1 and "host-test-4c.jsonl, line 2" in problems[0]


def test_an_unknown_field_or_a_time_of_zero_is_no_timing():
    with pytest.raises(ValidationError):
        timing(0.0)
    with pytest.raises(ValidationError):
        timing(0.1, speed=3)


def test_efficiency_is_the_median_of_predicted_over_measured():
    profile, problem = host_profile(), AttentionProblem(1, 8, 8, 1024, 1024, 64)
    promised = predict(profile, problem, by_path(OURS), Config(tuple(TILE.items()))).seconds
    rows = tuple(timing(promised * factor) for factor in (2.0, 4.0, 5.0))
    found = learned.efficiencies(profile, rows).of_class[LONG_F32]
    assert (found.value, found.timings) == (pytest.approx(0.25), 3)


def test_the_nearest_timings_correct_a_prediction():
    profile, tile, one = host_profile(), Config(tuple(TILE.items())), AttentionProblem(1, 8, 8, 1024, 1024, 64)
    longer, causal, wider = replace(one, seq_kv=4096), replace(one, causal=True), AttentionProblem(1, 8, 8, 64, 64, 128)
    slow = {one: 2.0, longer: 4.0, causal: 8.0}
    rows = []
    for problem, factor in slow.items():
        promised = predict(profile, problem, by_path(OURS), tile).seconds
        shape = (1, 8, 8, 1024, problem.seq_kv, 64, 64)
        rows.append(timing(promised * factor, shape=shape, causal=problem.causal))
    found = learned.efficiencies(profile, tuple(rows))

    def of(problem: AttentionProblem) -> float:
        return 1 / found.nearest(by_path(OURS), tile, problem).value

    assert [of(problem) for problem in slow] == pytest.approx(list(slow.values()))
    assert of(replace(one, seq_kv=1100)) == pytest.approx(2) and of(replace(one, seq_kv=9000)) == pytest.approx(4)
    assert of(replace(causal, seq_kv=9000)) == pytest.approx(8)  # its own edges before its own length
    assert of(replace(one, window=(64, -1))) == of(wider) == pytest.approx(4)  # the median of all
    assert Corrections().nearest(by_path(OURS), tile, one) is None


def test_what_is_on_file_is_read_again_when_it_has_changed(data):
    profile = host_profile().model_copy(update={"gpu": "host-test-4c"})
    assert not learned.of_machine(profile)
    timings.write(timing(0.01))
    first = learned.of_machine(profile)
    assert first.of_class[LONG_F32].timings == 1 and learned.of_machine(profile) is first
    timings.write(timing(0.02))
    assert learned.of_machine(profile).of_class[LONG_F32].timings == 2


def test_a_row_whose_clock_is_known_counts_before_those_of_the_same_code_and_problem():
    profile, problem = host_profile(), AttentionProblem(1, 8, 8, 1024, 1024, 64)
    promised = predict(profile, problem, by_path(OURS), Config(tuple(TILE.items()))).seconds
    old, new = timing(promised * 2, schema_version=1), timing(promised * 4, clock_mhz=1980.0)
    elsewhere = timing(promised * 8, schema_version=1, shape=(1, 8, 8, 1024, 4096, 64, 64))
    assert learned.efficiencies(profile, (old,)).of_class[LONG_F32].value == pytest.approx(1 / 2)
    assert learned.efficiencies(profile, (old, new)).of_class[LONG_F32].value == pytest.approx(1 / 4)
    assert learned.efficiencies(profile, (old, new, elsewhere)).of_class[LONG_F32].timings == 2


@pytest.mark.parametrize(
    "changes",
    [{"passes": "backward"}, {"passes": "forward and backward"}, {"flags": ("busy",)}, {"flags": ("stolen",)}],
)
def test_another_pass_or_a_disturbed_call_teaches_a_forward_nothing(changes):
    assert not learned.efficiencies(host_profile(), (timing(0.01, **changes),))
    assert learned.efficiencies(host_profile(), (timing(0.01, flags=("throttled:power-cap",)),))


def test_what_was_asked_beside_the_shape_is_part_of_the_problem():
    problem = timing(0.01, features={"softcap": 30.0, "alibi": True, "mask": "none"}).problem
    assert problem.softcap == 30.0 and problem.alibi and problem.mask == "none"
    with pytest.raises(ValidationError):
        timing(0.01, features={"dropout_p": 0.5})


def test_a_time_below_what_the_gpu_needs_is_an_error_and_named(data):
    timings.write(timing(0.01, bound_seconds=0.02))
    found, problems = timings.read("host-test-4c")
    assert not found and "less than the 0.02 that this GPU needs" in problems[0]


def test_a_timing_of_other_source_or_of_a_vanished_variant_does_not_count():
    stale, gone = timing(1.0, source_sha256="0" * 64), timing(1.0).model_copy(update={"variant": "host/forward/gone"})
    assert not learned.efficiencies(host_profile(), (stale, gone))


def test_code_is_what_is_included_without_comments_and_what_chooses_a_tile(tmp_path, monkeypatch):
    folder = tmp_path / "sm80/forward/one"
    folder.mkdir(parents=True)
    monkeypatch.setattr(identity, "KERNELS", tmp_path)
    (folder / "kernel.cu").write_text('#include "part.cuh"\n')
    steps = (("part.cuh", "1", 1), ("part.cuh", "1  // why", 1), ("variant.py", "2", 1), ("unread.cuh", "3", 1))
    steps += (("part.cuh", "4", 2), ("kernel.cu", '#include "part.cuh"\n5', 3))
    # Renamed, split, and written in one file: the same kernel.
    steps += (("renamed.cuh", "#pragma once\n4", 3), ("kernel.cu", '#include "renamed.cuh"\n5', 3))
    steps += (
        ("rest.cuh", "5", 3),
        ("kernel.cu", '#include "renamed.cuh"\n#include "rest.cuh"', 3),
        ("kernel.cu", "4 5", 3),
    )
    seen = set()
    for name, text, distinct in steps:
        (folder / name).write_text(text)
        identity.text_sha256.cache_clear()
        seen.add(identity.text_sha256("sm80/forward/one"))
        assert len(seen) == distinct, name
    identity.text_sha256.cache_clear()


@pytest.mark.parametrize("disturbed", [(), ("busy",)])
def test_the_bench_checks_times_and_keeps_each_candidate_of_a_quiet_machine(data, monkeypatch, disturbed):
    monkeypatch.setattr(bench, "trouble", lambda *_: disturbed)
    monkeypatch.setattr(turns, "USUAL", turns.Rounds(3, 3))
    problem = AttentionProblem(1, 4, 2, 70, 90, 16, causal=True)
    measured = bench.bench([problem])
    assert {each.candidate.variant for each in measured} == {
        f"host/forward/{name}" for name in ("tiled_online_softmax", "torch_sdpa", "torch_math")
    }
    assert sum(each.picked for each in measured) == 1
    assert all(each.timing and each.timing.error <= each.timing.allowed_error for each in measured)
    kept, problems = timings.read(measured[0].timing.gpu)
    assert len(kept) == (0 if disturbed else 3) and not problems and measured[0].disturbed == disturbed
    assert all(each.problem == problem and each.low <= each.seconds <= each.high for each in kept)
    assert str(paths.writable_data()) == str(data)


def test_a_wrong_kernel_is_named_and_not_timed(data, monkeypatch):
    real = bench.by_path

    def broken(path):
        variant = real(path)

        class Broken:
            def load(self):
                run = variant.load()
                return lambda *a: (run(*a)[0] * 1.5, None) if path == OURS else run(*a)

            def prepare(self):
                pass

        return Broken()

    monkeypatch.setattr(bench, "by_path", broken)
    ours = next(each for each in bench.bench([AttentionProblem(1, 2, 2, 40, 40, 16)]) if each.candidate.variant == OURS)
    assert ours.timing is None and "wrong" in ours.failure
    assert all(each.variant != OURS for each in timings.read(host_slug())[0])
