"""How the driver is asked for a launch, with clusters of blocks and without: no GPU is here."""

from typing import Any

import pytest

from attention.errors import LaunchError
from attention.kernels.launch import driver as ours
from attention.kernels.launch.driver import Function

driver = pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed")
SUCCESS, REFUSED = driver.CUresult.CUDA_SUCCESS, driver.CUresult.CUDA_ERROR_INVALID_CLUSTER_SIZE


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What either call of the driver is given."""
    calls: list[Any] = []

    def plain(*given: Any) -> tuple[Any]:
        calls.append(given)
        return (SUCCESS,)

    def extensible(config: Any, function: Any, arguments: int, extra: int) -> tuple[Any]:
        sides = config.attrs[0].value.clusterDim
        calls.append(
            {
                "grid": (config.gridDimX, config.gridDimY, config.gridDimZ),
                "block": (config.blockDimX, config.blockDimY, config.blockDimZ),
                "cluster": (sides.x, sides.y, sides.z),
                "others": (config.sharedMemBytes, int(config.hStream), int(function), arguments, extra),
            }
        )
        return (SUCCESS,)

    monkeypatch.setattr(driver, "cuLaunchKernel", plain)
    monkeypatch.setattr(driver, "cuLaunchKernelEx", extensible)
    monkeypatch.setattr(ours, "make_current", lambda: None)
    return calls


def test_blocks_by_themselves_take_the_plain_call(asked: list[Any]) -> None:
    ours.launch(Function(0x1234, None, 50_000), 148, 512, 7, 0xABCD)
    assert asked == [(0x1234, 148, 1, 1, 512, 1, 1, 50_000, 7, 0xABCD, 0)]


def test_pairs_of_blocks_are_clusters_of_two(asked: list[Any]) -> None:
    ours.launch(Function(0x1234, None, 50_000, 2), 148, 512, 7, 0xABCD)
    assert asked == [
        {
            "grid": (148, 1, 1),
            "block": (512, 1, 1),
            "cluster": (2, 1, 1),
            "others": (50_000, 7, 0x1234, 0xABCD, 0),
        }
    ]


def test_a_refused_cluster_is_one_sentence(asked: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "cuLaunchKernelEx", lambda *_: (REFUSED,))
    monkeypatch.setattr(driver, "cuGetErrorName", lambda status: (SUCCESS, status.name.encode()))
    monkeypatch.setattr(ours.torch.cuda, "get_device_name", lambda *_: "a B200")
    with pytest.raises(LaunchError, match=r"a B200 could not launch an attention kernel in clusters of 2: .*CLUSTER"):
        ours.launch(Function(0x1234, None, 50_000, 2), 148, 512, 7, 0xABCD)
