from types import SimpleNamespace

import pytest
import torch

from attention.choose import machine
from microbench.errors import UnknownArch
from tests.cpu.attention_profiles import hopper_profile, saved


@pytest.fixture
def gpu(monkeypatch, data):
    """A made-up GPU, `gpu(name, capability, sm_count)`, beside one shipped profile of a Hopper with 132 SMs."""
    saved(data, hopper_profile())

    def present(name, capability, sm_count):
        facts = SimpleNamespace(
            major=capability[0], minor=capability[1], multi_processor_count=sm_count, total_memory=80 << 30
        )
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _device: facts)
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda _device: name)

    return present


def test_a_gpu_of_a_profile_is_judged_by_it(gpu):
    gpu("h100-test", (9, 0), 132)
    assert machine.machine_profile("cuda:0") == machine.MachineProfile(hopper_profile())


def test_a_gpu_that_nobody_measured_is_judged_by_one_of_its_architecture(gpu):
    gpu("NVIDIA H100 PCIe", (9, 0), 114)
    found = machine.machine_profile("cuda:0")
    assert found.profile.gpu == "h100-test"
    assert "H100 PCIe, 114 SMs" in found.caution and "make bench" in found.caution


def test_a_gpu_of_an_architecture_that_nobody_measured_gets_an_empty_profile(gpu):
    gpu("NVIDIA A100-SXM4-80GB", (8, 0), 108)
    found = machine.machine_profile("cuda:0")
    assert (found.profile.arch, found.profile.sm_count, found.profile.constants) == ("sm80", 108, ())
    assert "none of sm80 is shipped" in found.caution


def test_a_gpu_older_than_every_kernel_is_named(gpu):
    gpu("Tesla P100", (6, 0), 56)
    with pytest.raises(UnknownArch):
        machine.machine_profile("cuda:0")
