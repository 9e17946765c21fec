"""What the driver reads of a launch, with clusters of blocks and without: no GPU is here."""

import ctypes
from typing import Any

import pytest

from attention.errors import LaunchError
from attention.kernels.launch import driver as ours
from attention.kernels.launch import frame
from attention.kernels.launch.driver import INVALID_CONTEXT, Function
from attention.kernels.launch.frame import Attribute, Configuration, Frame

driver = pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed")
REFUSED = int(driver.CUresult.CUDA_ERROR_INVALID_CLUSTER_SIZE)


class Argument(ctypes.Structure):
    _fields_ = (("out", ctypes.c_void_p), ("rows", ctypes.c_int))


class Driver:
    """cuLaunchKernelEx, as far as it reads; it answers with the statuses given, then with success."""

    def __init__(self) -> None:
        self.statuses: list[int] = []
        self.launches: list[Any] = []
        self.made_current = 0

    def launch(self, configuration: int, function: int, arguments: int, extra: None) -> int:
        read = Configuration.from_address(configuration)
        (argument,) = (ctypes.c_void_p * 1).from_address(arguments)
        attributes = [Attribute.from_address(read.attributes)] if read.attribute_count else []
        self.launches.append(
            {
                "grid": tuple(read.grid),
                "block": tuple(read.block),
                "others": (read.smem_bytes, read.stream, function, extra),
                "clusters": [(each.id, tuple(each.sides)) for each in attributes],
                "argument": (Argument.from_address(argument).out, Argument.from_address(argument).rows),
            }
        )
        return self.statuses.pop(0) if self.statuses else 0

    def make_current(self) -> None:
        self.made_current += 1


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Driver:
    found = Driver()
    monkeypatch.setattr(frame, "launcher", lambda: found.launch)
    monkeypatch.setattr(ours, "make_current", found.make_current)
    monkeypatch.setattr(ours.torch.cuda, "get_device_name", lambda *_: "a B200")
    monkeypatch.setattr(
        driver, "cuGetErrorName", lambda status: (driver.CUresult(0), driver.CUresult(status).name.encode())
    )
    return found


def framed(cluster: int = 1) -> Frame:
    return Frame(Function(0x1234, None, 50_000, cluster), 148, 512, Argument, bytes(Argument(0, 33)))


@pytest.mark.parametrize("cluster", [1, 2])
def test_the_driver_reads_grid_block_memory_stream_and_clusters(asked: Driver, cluster: int) -> None:
    launch = framed(cluster)
    launch.argument.out = 0xABCD
    launch.launch(7)
    assert asked.launches == [
        {
            "grid": (148, 1, 1),
            "block": (512, 1, 1),
            "others": (50_000, 7, 0x1234, None),
            "clusters": [(4, (2, 1, 1))] if cluster > 1 else [],
            "argument": (0xABCD, 33),
        }
    ]


def test_the_structures_are_as_long_as_the_drivers(asked: Driver) -> None:
    """As cuda.bindings has them, made from the same header."""
    assert driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION == frame.CLUSTER_DIMENSION
    assert int(driver.CUresult.CUDA_ERROR_INVALID_CONTEXT) == INVALID_CONTEXT
    theirs = driver.CUlaunchConfig()
    theirs.gridDimX, theirs.blockDimX, theirs.sharedMemBytes = 148, 512, 50_000
    theirs.hStream, theirs.numAttrs = driver.CUstream(7), 0
    read = Configuration.from_address(theirs.getPtr())
    assert (read.grid[0], read.block[0], read.smem_bytes, read.stream, read.attribute_count) == (148, 512, 50_000, 7, 0)
    attribute = driver.CUlaunchAttribute()
    attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    sides = attribute.value.clusterDim
    sides.x, sides.y, sides.z = 2, 1, 1
    attribute.value.clusterDim = sides
    found = Attribute.from_address(attribute.getPtr())
    assert (found.id, tuple(found.sides)) == (4, (2, 1, 1)) and ctypes.sizeof(Attribute) == 72


def test_a_frame_launches_again_on_another_stream(asked: Driver) -> None:
    launch = framed()
    launch.launch(7)
    launch.argument.rows = 34
    launch.launch(9)
    assert [(each["others"][1], each["argument"][1]) for each in asked.launches] == [(7, 33), (9, 34)]


def test_a_threads_first_launch_finds_its_context(asked: Driver) -> None:
    asked.statuses = [INVALID_CONTEXT]
    framed().launch(7)
    assert len(asked.launches) == 2 and asked.made_current == 1


def test_a_refused_cluster_is_one_sentence(asked: Driver) -> None:
    asked.statuses = [REFUSED]
    with pytest.raises(LaunchError, match=r"a B200 could not launch an attention kernel in clusters of 2: .*CLUSTER"):
        framed(2).launch(7)
    assert asked.made_current == 0 and len(asked.launches) == 1
