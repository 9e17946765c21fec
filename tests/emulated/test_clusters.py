"""Clusters by the smallest kernels: where a block stands, whom it waits for, and whose shared memory it reaches."""

import itertools
from functools import partial

import numpy as np
import pytest

from microbench.emulator import MODES, EmulatedDevice, Mode
from microbench.errors import DeviceError
from tests.emulated.small import run_small

launch = partial(run_small, "cluster elect memory multicast", cluster=(2,), grid=(4,), words=1024)
ARENA = "const unsigned at = ptx::shared_base(), rank = ptx::cluster_rank();\n"


def test_a_block_knows_its_place() -> None:
    grid, cluster = (4, 3, 2), (2, 1, 2)
    out = np.zeros((24, 11), np.int32)
    body = (
        "const int block = (blockIdx.z * 3 + blockIdx.y) * 4 + blockIdx.x;\n"
        "const ptx::dim d[] = {ptx::block_in_cluster(), ptx::cluster_dim(), ptx::cluster_index()};\n"
        "int* mine = out + 11 * block; mine[0] = ptx::cluster_rank(); mine[1] = ptx::cluster_size();\n"
        "for (int i = 0; i < 3; ++i) { mine[2 + 3 * i] = d[i].x; mine[3 + 3 * i] = d[i].y; mine[4 + 3 * i] = d[i].z; }"
    )
    for mode in MODES:
        out[:] = -1
        launch(body, out, grid=grid, cluster=cluster, threads=1, device=EmulatedDevice(mode))
        for z, y, x in itertools.product(*map(range, grid[::-1])):
            place = (x % 2, 0, z % 2)
            expected = (place[0] + 2 * place[2], 4, *place, *cluster, x // 2, y, z // 2)
            np.testing.assert_array_equal(out[(z * 3 + y) * 4 + x], expected)


@pytest.mark.parametrize("size", [1, 2, 3, 8])
@pytest.mark.parametrize("mode", MODES)
def test_blocks_read_each_others_shared_memory(mode: Mode, size: int) -> None:
    out = np.zeros((2 * size, 96), np.int32)
    body = ARENA + (
        "ptx::store_shared(at + 4 * t, 1000 * blockIdx.x + t); ptx::cluster_sync();\n"
        "const unsigned next = ptx::map_shared(at + 4 * t, (rank + 1) % ptx::cluster_size());\n"
        "out[96 * blockIdx.x + t] = ptx::load_cluster(next); ptx::cluster_sync();"
    )
    launch(body, out, grid=(2 * size,), cluster=(size,), threads=96, device=EmulatedDevice(mode))
    block = np.arange(2 * size)
    np.testing.assert_array_equal(out, 1000 * (block // size * size + (block + 1) % size)[:, None] + np.arange(96))


REPORTS = {
    "a peer's memory read before it was written": (
        "ptx::store_shared(at + 4 * t, t);\n"
        "out[64 * rank + t] = ptx::load_cluster(ptx::map_shared(at + 4 * t, rank ^ 1)); ptx::cluster_sync();",
        "race: ",
    ),
    "a block that ends while a peer reads": (
        "ptx::store_shared(at + 4 * t, t); ptx::cluster_sync();\n"
        "out[64 * rank + t] = ptx::load_cluster(ptx::map_shared(at + 4 * t, rank ^ 1));",
        "ended: the block of rank . ends while thread .* of the block of rank . may still use its shared memory",
    ),
    "a rank that the cluster lacks": ("out[t] = ptx::map_shared(at, 2);", "mapa: rank 2 of a cluster of 2"),
    "a mapped address for a plain load": (
        "out[t] = ptx::load_shared(ptx::map_shared(at, rank ^ 1));",
        "ld.shared at shared address .*, of another block: it needs shared::cluster",
    ),
    "a copy that completes in another block": (
        "if (t == 0) { ptx::mbarrier_init(at, 1); ptx::fence_mbarrier_init(); } ptx::cluster_sync();\n"
        "if (t == 0) ptx::bulk_load(ptx::map_shared(at + 16, rank ^ 1), out, 16, at);",
        "the destination .* and the mbarrier .* lie in two blocks",
    ),
    "a multicast to nobody": (
        "if (t == 0) { ptx::mbarrier_init(at, 1); ptx::fence_mbarrier_init();\n"
        "ptx::bulk_load_multicast(at + 16, out, 16, at, 0); }",
        "a multicast whose mask names no block",
    ),
    "a multicast beyond the cluster": (
        "if (t == 0) { ptx::mbarrier_init(at, 1); ptx::fence_mbarrier_init();\n"
        "ptx::bulk_load_multicast(at + 16, out, 16, at, 7); }",
        "the mask 0x7 names a rank of a cluster of 2",
    ),
    "a multicast to a peer that may not be ready": (
        "if (!t) { ptx::mbarrier_init(at, 1); ptx::fence_mbarrier_init(); ptx::mbarrier_arrive_expect(at, 16); }\n"
        "__syncthreads(); if (rank == 0 && t == 0) ptx::bulk_load_multicast(at + 16, out, 16, at, 3);\n"
        "ptx::mbarrier_wait(at, 0); ptx::cluster_sync();",
        "a bulk copy.* (not ordered after mbarrier.init|no mbarrier was initialised)",
    ),
    "a multicast over what a peer still reads": (
        "const unsigned bar = at + 512;\n"
        "if (!t) { ptx::mbarrier_init(bar, 1); ptx::fence_mbarrier_init(); ptx::mbarrier_arrive_expect(bar, 256); }\n"
        "ptx::store_shared(at + 4 * t, t); ptx::fence_proxy_async(); ptx::cluster_sync();\n"
        "if (rank == 1) out[t] = ptx::load_shared(at + 4 * t);\n"
        "if (rank == 0 && t == 0) ptx::bulk_load_multicast(at, out + 64, 256, bar, 3);\n"
        "ptx::mbarrier_wait(bar, 0); ptx::cluster_sync();",
        "race: (cp.async.bulk|ld.shared) .* not ordered after",
    ),
    "a wait at another block's mbarrier": (
        "if (t == 0) { ptx::mbarrier_init(at, 1); ptx::fence_mbarrier_init(); } ptx::cluster_sync();\n"
        "ptx::mbarrier_wait(ptx::map_shared(at, rank ^ 1), 0);",
        "mbarrier.try_wait at shared address .*, of another block",
    ),
    "an arrival in another block without the init's fence": (
        "if (t == 0) ptx::mbarrier_init(at, 1); ptx::cluster_sync();\n"
        "if (t == 0) ptx::mbarrier_arrive_remote(ptx::map_shared(at, rank ^ 1)); ptx::cluster_sync();",
        "fence: mbarrier.arrive .* initialised it without fence.mbarrier_init before the cluster barrier",
    ),
    "a peer's data behind a relaxed barrier": (
        "ptx::store_shared(at + 4 * t, t); ptx::cluster_arrive_relaxed(); ptx::cluster_wait();\n"
        "out[64 * rank + t] = ptx::load_cluster(ptx::map_shared(at + 4 * t, rank ^ 1)); ptx::cluster_sync();",
        "race: ld.shared::cluster .* not ordered after the write",
    ),
    "data sent without a proxy fence": (
        "const unsigned bar = at + 512, there = ptx::map_shared(at, rank ^ 1);\n"
        "if (t == 0) { ptx::mbarrier_init(bar, 1); ptx::fence_mbarrier_init(); } ptx::cluster_sync();\n"
        "ptx::store_shared(at + 4 * t, t); __syncthreads();\n"
        "if (t == 0) ptx::bulk_send(there + 256, at, 256, ptx::map_shared(bar, rank ^ 1));",
        "proxy: cp.async.bulk between blocks reads shared address .* without fence.proxy.async",
    ),
    "a sender that ends before its copy has been read": (
        "const unsigned bar = at + 512;\n"
        "if (!t) { ptx::mbarrier_init(bar, 1); ptx::fence_mbarrier_init(); ptx::mbarrier_arrive_expect(bar, 256); }\n"
        "ptx::store_shared(at + 4 * t, t); ptx::fence_proxy_async(); ptx::cluster_sync();\n"
        "if (rank == 0 && t == 0) ptx::bulk_send(ptx::map_shared(at + 256, 1), at, 256, ptx::map_shared(bar, 1));\n"
        "if (rank == 1) ptx::mbarrier_wait(bar, 0);",
        "ended: the block of rank 0 ends while a copy that completes on mbarrier number 0 of the block of rank 1",
    ),
    "half of a cluster at the barrier": (
        "if (rank == 0) ptx::cluster_wait(); else ptx::cluster_arrive();",
        "barrier.cluster.wait without barrier.cluster.arrive",
    ),
    "a thread that arrives twice": (
        "ptx::cluster_arrive(); ptx::cluster_arrive();",
        "arrived before, and did not wait",
    ),
    "a block that waits for a peer elsewhere": (
        "if (rank == 0) { ptx::cluster_sync(); } else { ptx::barrier_sync(1, 128 - 64); ptx::barrier_sync(1, 64);\n"
        "if (t < 32) ptx::barrier_sync(2, 64); }",
        "deadlock: block 0,0,0 warp 0 at barrier.cluster.wait x32; .*; block 1,0,0 warp 0 at bar.sync 0x2 x32",
    ),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("what", REPORTS)
def test_a_broken_rule_is_reported(what: str, mode: Mode) -> None:
    body, report = REPORTS[what]
    with pytest.raises(DeviceError, match=report):
        launch(ARENA + body, grid=(2,), device=EmulatedDevice(mode))


def test_a_launch_that_no_gpu_takes_is_refused() -> None:
    with pytest.raises(DeviceError, match="at most 8 blocks, not 16"):
        launch("", grid=(16,), cluster=(16,))
    with pytest.raises(DeviceError, match="no multiple of the cluster"):
        launch("", grid=(4, 3), cluster=(2, 2))
