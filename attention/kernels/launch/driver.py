"""The CUDA driver, through cuda.bindings: load a cubin, encode a tensor map. Errors name call and GPU."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from attention.errors import EnvironmentLacks, LaunchError

INVALID_CONTEXT = 201  # CUDA_ERROR_INVALID_CONTEXT


@cache
def bindings() -> Any:
    """cuda.bindings.driver. Raises EnvironmentLacks where it is not installed."""
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise EnvironmentLacks(
            "cuda-bindings is not installed, and tuned GPU kernels are launched through it; `make bench` installs it, "
            "or `pip install cuda-bindings`."
        ) from error
    return driver


def check(result: tuple[Any, ...], doing: str) -> Any:
    """What a driver call returned beside its status. Raises LaunchError where the status is not success."""
    status, *values = result
    if int(status) != 0:
        named = bindings().cuGetErrorName(status)[1]
        name = named.decode() if isinstance(named, bytes) else str(status)
        raise LaunchError(
            f"{torch.cuda.get_device_name()} could not {doing}: {name}; set CUDA_LAUNCH_BLOCKING=1 to find the call."
        )
    return values[0] if len(values) == 1 else tuple(values)


@dataclass(frozen=True)
class Function:
    """A loaded kernel: its handle, the module that must outlive it, and how many blocks make a cluster."""

    handle: int
    module: Any
    smem_bytes: int
    cluster: int = 1


def make_current() -> None:
    """Make torch's context current in this thread: one that never touched the GPU has none."""
    driver = bindings()
    if int(check(driver.cuCtxGetCurrent(), "name its context")):
        return
    torch.cuda.init()  # type: ignore[no-untyped-call]
    device = check(driver.cuDeviceGet(torch.cuda.current_device()), "be found")
    check(
        driver.cuCtxSetCurrent(check(driver.cuDevicePrimaryCtxRetain(device), "keep its context")), "take its context"
    )


def load(image: bytes, kernel: str, smem_bytes: int, cluster: int = 1) -> Function:
    """Load a cubin into the current device's context, allowing `smem_bytes` of dynamic shared memory."""
    driver = bindings()
    make_current()
    module = check(driver.cuModuleLoadData(image), f"load {kernel}")
    function = check(driver.cuModuleGetFunction(module, kernel.encode()), f"find {kernel}")
    attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    check(driver.cuFuncSetAttribute(function, attribute, smem_bytes), f"give {kernel} {smem_bytes} bytes of memory")
    return Function(int(function), module, smem_bytes, cluster)


def current_stream(index: int) -> int:
    """The handle of torch's current stream on a device: a tenth of what torch.cuda.current_stream takes."""
    return int(torch._C._cuda_getCurrentRawStream(index))


def stream_id(stream: int) -> int:
    """A stream's number, which no other stream of this program ever has; its handle may come back."""
    driver = bindings()
    found = driver.cuStreamGetId(stream)
    if found[0] == driver.CUresult.CUDA_ERROR_INVALID_CONTEXT:
        make_current()
        found = driver.cuStreamGetId(stream)
    return int(check(found, "tell a stream's id"))


def zeroed(size: int) -> int:
    """The address of `size` bytes of zeroed memory in the current context, which nobody frees.

    Not torch's memory, which belongs to a graph while that is captured, and never to a captured stream: a graph of this
    thread, or of another one, goes on being captured. Raises LaunchError where there is no memory.
    """
    driver = bindings()
    make_current()
    relaxed = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    before = check(driver.cuThreadExchangeStreamCaptureMode(relaxed), "relax its capture mode")
    try:
        found = driver.cuMemAlloc(size)
        if found[0] == driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY and not torch.cuda.is_current_stream_capturing():
            torch.cuda.empty_cache()
            found = driver.cuMemAlloc(size)
        address = check(found, f"give {size} bytes for tile counters")
        stream = check(driver.cuStreamCreate(int(driver.CUstream_flags.CU_STREAM_NON_BLOCKING)), "create a stream")
        check(driver.cuMemsetD8Async(address, 0, size, stream), "zero tile counters")
        check(driver.cuStreamSynchronize(stream), "zero tile counters")
        check(driver.cuStreamDestroy(stream), "destroy a stream")
    finally:
        check(driver.cuThreadExchangeStreamCaptureMode(before), "restore its capture mode")
    return int(address)
