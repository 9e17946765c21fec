"""Real lengths of packed sequences and of slots: what they change in a prediction, and what they leave alone."""

from dataclasses import replace
from itertools import product

import pytest

from attention.campaign.posed import parse
from attention.choose.lengths import Lengths, Run, counted, presumed, sequences
from attention.choose.model import predict
from attention.choose.shares import rows_of_all, rows_read
from attention.problem import AttentionProblem
from attention.variant import Config, Variant, by_path
from microbench.results.profile import Profile

H200 = Profile.load("h200-sxm-141gb")
HOPPER = by_path("sm90a/forward/warp_specialised")
HOPPER_TILE = Config((("tile_keys", 128), ("warpgroups", 2), ("stages", 2), ("q_in_registers", 0)))
AMPERE = by_path("sm80/forward/software_pipelined")
AMPERE_TILE = Config((("warps", 4), ("tile_keys", 64)))
OURS = pytest.mark.parametrize(("variant", "config"), [(HOPPER, HOPPER_TILE), (AMPERE, AMPERE_TILE)])
UNEVEN = parse("packed 0 16 16 0 0 128 bf16 lengths=4096+3x3000+12x100")
EVEN = parse("packed 0 16 16 0 0 128 bf16 lengths=16x1024")
USED = parse("decode 16 32 8 1 8192 128 bf16 used=8192+15x512")
HARDLY = parse("decode 16 32 8 1 8192 128 bf16 used=4096+15x512")  # what the longest alone takes is half a slot's


def seconds(problem: AttentionProblem, lengths: Lengths, variant: Variant, config: Config) -> float:
    return predict(H200, problem, variant, config, lengths=lengths).seconds


def test_lengths_are_counted_as_they_follow_and_what_asks_nothing_is_left_out():
    assert counted((5, 0, 7, 5, 5), (9, 9, 0, 9, 9)) == (Run(1, 5, 9), Run(1, 7, 1), Run(2, 5, 9))
    assert UNEVEN.counted == (Run(1, 4096, 4096), Run(3, 3000, 3000), Run(12, 100, 100))
    assert USED.counted == (Run(1, 1, 8192), Run(15, 1, 512)) and parse("short 4 8 8 128 128 64 f16").counted == ()


def test_a_sequence_alone_is_as_long_as_it_is():
    each = [(many, one.batch, one.seq_q, one.varlen) for many, one in sequences(UNEVEN.problem, UNEVEN.counted)]
    assert each == [(1, 1, 4096, False), (3, 1, 3000, False), (12, 1, 100, False)]
    # Whoever knows the sum and the longest alone takes the others for alike.
    assert [(many, one.seq_q) for many, one in sequences(UNEVEN.problem)] == [(1, 4096), (15, 680)]


def test_tiles_are_those_of_every_sequence():
    found = rows_of_all(UNEVEN.problem, 128, 128, 128, 128, lengths=UNEVEN.counted)
    assert (found.number, found.longest) == (16 * (32 + 3 * 24 + 12), 32)
    assert found.total == 16 * (32**2 + 3 * 24**2 + 12)


def test_slots_are_read_as_far_as_they_are_used():
    assert rows_read(USED.problem, USED.counted) == 16 * 32 + 8 * (8192 + 15 * 512) < rows_read(USED.problem)


@OURS
def test_long_sequences_beside_the_longest_are_no_short_ones(variant, config):
    known, unknown = (seconds(UNEVEN.problem, each, variant, config) for each in (UNEVEN.counted, ()))
    assert known > 1.2 * unknown


@OURS
def test_sequences_of_one_length_are_what_they_were(variant, config):
    known, unknown = (seconds(EVEN.problem, each, variant, config) for each in (EVEN.counted, ()))
    assert known == pytest.approx(unknown)


@OURS
def test_a_cache_that_is_hardly_used_is_read_faster(variant, config):
    assert seconds(HARDLY.problem, HARDLY.counted, variant, config) < seconds(HARDLY.problem, (), variant, config) / 2


def test_a_problem_is_the_same_whatever_its_lengths():
    other = parse("packed 0 16 16 0 0 128 bf16 lengths=4096+2900+3100+3000+12x100")
    assert other.problem == UNEVEN.problem and other.counted != UNEVEN.counted
    assert replace(other.problem) == UNEVEN.problem


def test_sequences_of_which_one_has_nearly_all_rows_are_presumed_to_have_some():
    for batch, more in product((2, 3, 300), (0, 1, 5)):
        asked = replace(
            EVEN.problem, batch=batch, seq_q=60_000, seq_kv=60_000, tokens_q=60_000 + more, tokens_kv=60_000 + more
        )
        longest, *others = presumed(asked)
        assert longest.queries == 60_000 and all(1 <= each.queries <= 60_000 for each in others)


@pytest.mark.parametrize(
    ("batch", "lengths"),
    [(1, ((1, 600),)), (2, ((1, 900), (1, 300))), (40, ((8, 1080), (8, 840), (8, 600), (8, 360), (8, 120)))],
)
def test_slots_of_a_cache_are_presumed_to_be_evenly_full(batch, lengths):
    asked = AttentionProblem(batch, 8, 8, 1, 1200, 64, device="cuda", ranges=True)
    assert presumed(asked) == tuple(Run(many, 1, keys) for many, keys in lengths)


def test_packed_sequences_are_presumed_by_their_rows_whether_or_not_they_use_them_all():
    assert presumed(replace(UNEVEN.problem, ranges=True)) == presumed(UNEVEN.problem)
