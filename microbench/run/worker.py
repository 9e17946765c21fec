"""The process that measures: it opens the device when told to, answers point by point, and may be killed at any moment.

Until then it imports, and touches no GPU: another worker may be measuring on it.

Started by remote.py as `python -m microbench.run.worker <pipe> <device> <full|quick> [probe folders]`.
"""

import ctypes
import signal
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path

from microbench.device import open_device, prepare
from microbench.device.protocol import Device
from microbench.errors import DeviceError, SmscopeError, sentence
from microbench.measure import open_bench
from microbench.measure import prepare as prepare_bench
from microbench.point import Point
from microbench.probe import Probe
from microbench.probes import load
from microbench.run import wire

PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    pipe, device_name, pace, *folders = arguments
    _die_with_supervisor()
    supervisor: Connection[wire.Hello | wire.Refusal | wire.Answer, wire.Open | wire.Ask | None] = Connection(int(pipe))
    try:
        places = tuple(map(Path, folders))
        prepare(device_name)
        prepare_bench(device_name)
        if supervisor.recv() is None:
            return
        device = open_device(device_name)
        supervisor.send(wire.Hello(device.machine, device.facts()))
    except EOFError:
        return  # the supervisor is gone
    except Exception as error:  # whatever it is, the supervisor says it in one sentence
        kind = type(error).__name__ if isinstance(error, SmscopeError) else "DeviceError"
        supervisor.send(wire.Refusal(kind, sentence(error)))
        return
    try:
        while isinstance(ask := supervisor.recv(), wire.Ask):
            probe = load(ask.probe, *places)
            for method, point in ask.points:
                given = answer(device, probe, method, point, quick=pace == "quick")
                supervisor.send(given)
                if given.broken:
                    return
    except EOFError:
        pass  # the supervisor is gone
    device.close()


def answer(device: Device, probe: Probe, method: str, point: Point, quick: bool) -> wire.Answer:
    """Measure one point; every exception becomes a reason."""
    started = time.perf_counter()

    def spent() -> float:
        return time.perf_counter() - started

    try:
        bench = open_bench(device, probe, method, quick)
        samples = tuple(probe.run(bench, point))
        built = getattr(bench, "build_info", lambda: None)()
        cubin, registers = built or (None, None)
        return wire.Answer(samples, device.flags(), cubin, registers, seconds=spent())
    except Exception as error:  # a probe may raise anything, and the suite must go on
        return wire.Answer(reason=sentence(error, probe.file), seconds=spent(), broken=_breaks_context(error))


def _breaks_context(error: Exception) -> bool:
    """After a failed launch each later CUDA call of the process may fail too; CUDA gives no way to ask."""
    return isinstance(error, DeviceError) or "cuda" in type(error).__module__


def _die_with_supervisor() -> None:
    """Leave no worker behind on the GPU, even where the supervisor is killed while a kernel hangs."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))


if __name__ == "__main__":
    main(sys.argv[1:])
