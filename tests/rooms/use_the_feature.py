"""What a user and a kernel author do with a feature that was just added: run with it in the tree's place."""

import ctypes
import importlib
from dataclasses import replace

import numpy as np
import torch

import attention
from attention.choose.choose import choose
from attention.kernels.common.family import fill
from attention.kernels.launch.source import source_of
from attention.kernels.launch.tensors import place
from attention.oracle import reference
from attention.problem import AttentionProblem
from attention.variant import by_path
from attention.verify.builds import builds_of
from microbench.compile import Cubin, compile_all
from microbench.emulator import EmulatedDevice
from microbench.machine.arch import by_name
from tests.cpu.attention_profiles import hopper_profile
from tests.emulated.forward_launch import headers_of

torch.manual_seed(0)
PATH = "sm80/forward/software_pipelined"


def asked() -> AttentionProblem:
    return AttentionProblem(1, 2, 1, 70, 90, 64, dtype="bfloat16", device="cuda", gate=True)


def is_named() -> None:
    assert asked().features == ("gated bias",) and str(asked()).endswith("full gated")
    choice = choose(hopper_profile(), asked())
    assert choice.pick.owner == "smscope" and choice.fallback is None
    assert {"has no gated bias"} <= {refused.reason for refused in choice.refused}
    unserved = choose(hopper_profile(), replace(asked(), dtype="float64"))
    assert unserved.nearest is not None and "bfloat16" in unserved.nearest
    assert any("GATE" in build.asked for build in builds_of(PATH))


def is_computed_and_differentiated() -> None:
    q, k, v = (torch.randn(1, length, 2, 8, dtype=torch.float64, requires_grad=True) for length in (7, 9, 9))
    gate = torch.randn(2, dtype=torch.float64, requires_grad=True)
    out, lse = attention.flash_attn_func(q, k, v, gate=gate, return_lse=True)
    arrays = [tensor.detach().transpose(1, 2).numpy() for tensor in (q, k, v)]
    expected, expected_lse = reference.attention(*arrays, gate=gate.detach().numpy())
    np.testing.assert_allclose(out.detach().transpose(1, 2), expected, atol=1e-12)
    np.testing.assert_allclose(lse.detach(), expected_lse, atol=1e-12)
    assert torch.autograd.gradcheck(
        lambda *given: attention.flash_attn_func(*given[:3], gate=given[3]), (q, k, v, gate), fast_mode=True
    )
    mapped = torch.vmap(lambda g: attention.flash_attn_func(q.detach(), k.detach(), v.detach(), gate=g))
    torch.testing.assert_close(mapped(gate.detach()[None])[0], out.detach())
    try:
        attention.flash_attn_func(q, k, v, gate=torch.ones(3))
    except attention.ProblemError as error:
        assert "gate has shape (3,); give it (2,)" in str(error)


def is_compiled() -> None:
    problem = replace(asked(), seq_q=4096, seq_kv=4096)
    for path, arch in ((PATH, "sm80"), ("sm90a/forward/warp_specialised", "sm90a")):
        variant = by_path(path)
        legal = [each for each in variant.configs() if not variant.illegal(problem, each, by_name(arch))]
        (made,) = compile_all([source_of(variant.folder, variant.steps(problem, legal[0])[0], by_name(arch))])
        assert isinstance(made, Cubin) and not made.resources.spills, made


def is_emulated() -> None:
    """The kernel's own source with the feature in it, launched by the description that it is compiled with."""
    problem, variant = asked(), by_path(PATH)
    config = next(each for each in variant.configs() if not variant.illegal(problem, each, by_name("sm80")))
    (build,), device = variant.steps(problem, config), EmulatedDevice()
    module = importlib.import_module(f"{variant.module.rpartition('.')[0]}.arguments")
    launch, shape = module.Launch(), module.shape_of(problem, config)
    sizes = ((1, 2, 70, 64), (1, 1, 90, 64), (1, 1, 90, 64), (1, 2, 70, 64))
    q, k, v = (torch.randn(size).bfloat16() for size in sizes[:3])
    bits = [device.asarray(each.view(torch.int16).numpy().view(np.uint16)) for each in (q, k, v)]
    out, lse = device.empty(sizes[3], np.uint16), device.empty((1, 2, 70), np.float32)
    gate = torch.from_numpy(device.asarray(np.array([0.7, -1.2], np.float32)))
    blocks = fill(launch, problem, sizes[0], sizes[1], shape.tile_rows)
    for name, array in zip(("q", "k", "v", "out"), (*bits, out), strict=True):
        setattr(launch, name, array.ctypes.data)
        for axis, stride in zip(("batch", "head", "row"), array.strides, strict=False):
            setattr(launch, f"{name}_{axis}", stride // 2)
    launch.lse = lse.ctypes.data
    place(launch, attention.call.Extras(gate=gate))
    source = (variant.folder / "forward_sm80.cu").read_text()
    include = headers_of(variant.folder)
    kernel = device.load(source, "forward_sm80.cu", kernel=build.kernel, defines=build.defines, include=include)
    kernel((blocks,), (build.threads,), (np.void(bytes(launch)),), shared_mem=build.smem_bytes)
    arrays = [each.double().numpy() for each in (q, k, v)]
    expected, expected_lse = reference.attention(*arrays, gate=gate.numpy())
    found = torch.from_numpy(np.asarray(out).view(np.int16)).view(torch.bfloat16).double().numpy()
    np.testing.assert_allclose(found, expected, atol=0.02)
    np.testing.assert_allclose(np.asarray(lse), expected_lse, atol=1e-3)
    assert ctypes.sizeof(launch) % 8 == 0


is_named()
is_computed_and_differentiated()
is_compiled()
is_emulated()
