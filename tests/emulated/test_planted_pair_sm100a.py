"""Mistakes of a pair of blocks, planted in the sm100a forward kernel: each is found, by a report or the oracle."""

import re
from functools import cache

import pytest

from microbench.emulator import MODES, Mode
from tests.emulated.forward_case import ForwardCase
from tests.emulated.forward_launch import Kernel
from tests.emulated.forward_planted import WRONG, Bug, outcome, planted
from tests.emulated.forward_sm100a import PATH, config_of, run

# Rows of both blocks, the last ones cut short; two tiles of rows and four of keys for one pair, so that rings go round.
SCHEDULE = {"blocks": 2}
CASE = ForwardCase(heads_q=2, heads_kv=1, seq_q=300, seq_kv=250, spread=12.0)
LOST, RACE = "deadlock: ", "race: "

BUGS = {
    "commits arrive in one block": Bug(
        "block_pair.cuh", "void commit", "kBothBlocks", "1 << ptx::cluster_rank()", f"{LOST}.*mbarrier"
    ),
    "both blocks load the first half of the keys": Bug(
        "load.cuh", "load_k", "block_of_pair() * kHeldKeys", "0 * kHeldKeys"
    ),
    "each block loads the other one's half of V": Bug(
        "load.cuh", "load_v", "block_of_pair() * kHeldValues", "(1 - block_of_pair()) * kHeldValues"
    ),
    "a block expects the bytes of both halves": Bug(
        "load.cuh",
        "load_keys",
        "ptx::mbarrier_arrive_expect(full + 8 * ring.stage(), bytes);",
        "ptx::mbarrier_arrive_expect(full + 8 * ring.stage(), 2 * bytes);",
        f"{LOST}.*mbarrier",
    ),
    "the other block's Q is announced before it is there": Bug(
        "relay.cuh",
        "void run(",
        "announce(at.q_full + 8 * each, q.parity());",
        "ptx::mbarrier_arrive_remote(ptx::map_shared(at.q_full + 8 * each, kIssuingBlock));",
        f"{RACE}tcgen05.mma",
    ),
    "the other block's halves of K and V are announced before they are there": Bug(
        "relay.cuh", "void announce(", "ptx::mbarrier_wait(full, parity);", says=f"{RACE}|more arrivals"
    ),
    "the issuer counts its own halves alone": Bug(
        "forward_sm100a.cu",
        "",
        "init(at.kv_full, kStages, 1 + relays());",
        "init(at.kv_full, kStages, 1);",
        f"{RACE}|more arrivals|{LOST}",
    ),
    "P of the other block is not waited for": Bug(
        "forward_sm100a.cu",
        "",
        "init(at.ready, 2, kGroup * (4 + 4));",
        "init(at.ready, 2, 4 + 4);",
        f"{RACE}|fence: |more arrivals|{LOST}",
    ),
    "P is announced in the block that has it": Bug(
        "block_pair.cuh", "void arrive_at_issuer", "kIssuingBlock", "ptx::cluster_rank()", "more arrivals|deadlock: "
    ),
    "no fence before P of the other block is announced": Bug(
        "softmax.cuh",
        "void step(",
        "ptx::tcgen05_fence_before();",
        "if (issues()) ptx::tcgen05_fence_before();",
        "tcgen05.fence::before_thread_sync",
    ),
    "both blocks have the same rows": Bug(
        "block_pair.cuh", "Work own_work", "block_of_pair() * kBlockRows", "0 * kBlockRows", f"{RACE}|{WRONG}"
    ),
    "each block takes tiles of its own": Bug(
        "load.cuh", "void load(", "blockIdx.x / kGroup", "blockIdx.x", f"{RACE}|{LOST}|{WRONG}"
    ),
    "products are described as those of one block": Bug(
        "multiply.cuh",
        "tcgen05_mma_f16_ss<kGroup>(",
        "kInstruction",
        "((kInstruction & ~(31u << 24)) | kRows >> 4 << 24)",
        f"{RACE}|{WRONG}|out of bounds",
    ),
    "both blocks multiply": Bug(
        "block_pair.cuh", "bool issues()", "block_of_pair() == kIssuingBlock", "true", f"{RACE}|{LOST}|more arrivals"
    ),
    "blocks meet at their own barrier before they arrive in each other": Bug(
        "forward_sm100a.cu", "ptx::tcgen05_relinquish", "meet();", "__syncthreads();", "race: |fence: |no mbarrier"
    ),
    "a block ends while the other one works": Bug(
        "forward_sm100a.cu", "clear(launch, at);", "meet();", says="race: tcgen05.dealloc|ended|deadlock: .*dealloc"
    ),
    "tensor memory is asked for by one block": Bug(
        "forward_sm100a.cu",
        "",
        "ptx::tcgen05_alloc<kGroup>(at.tensor_memory, kColumns);",
        "ptx::tcgen05_alloc<1>(at.tensor_memory, kColumns);",
        "a kernel keeps to one cta_group",
    ),
    "one block gives tensor memory back": Bug(
        "forward_sm100a.cu",
        "clear(launch, at);",
        "if (warp_number() == kIssuer) ptx::tcgen05_dealloc<kGroup>(ptx::load_shared(at.tensor_memory), kColumns);",
        "if (warp_number() == kIssuer && issues()) "
        "ptx::tcgen05_dealloc<kGroup>(ptx::load_shared(at.tensor_memory), kColumns);",
        "deadlock: .*tcgen05.dealloc|ended without tcgen05.dealloc",
    ),
}


@cache
def armed() -> Kernel:
    """The kernel with all of them."""
    pair = config_of(64, polynomial=4, dynamic=0, cta_group=2)
    return planted(Kernel(PATH, pair, CASE.problem), "forward_sm100a.cu", BUGS.values())


@pytest.mark.parametrize("mode", MODES)
def test_nothing_is_found_where_no_mistake_is_armed(mode: Mode) -> None:
    assert outcome(run, armed(), mode, CASE, 0, **SCHEDULE) == ""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", BUGS)
def test_a_planted_mistake_is_found(name: str, mode: Mode) -> None:
    bug = BUGS[name]
    number = 1 + list(BUGS).index(name)
    assert re.search(bug.says, outcome(run, armed(), mode, bug.case or CASE, number, **SCHEDULE))
