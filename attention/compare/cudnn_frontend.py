"""cuDNN by its own front end (nvidia-cudnn-frontend), for what torch does not pass on: windows and packed sequences."""

from collections.abc import Callable
from importlib import metadata
from typing import Any

from attention.call import Tensors
from attention.compare.torchs import ALIGNED, VARLEN, WINDOW, refuse_others
from attention.errors import UnsupportedError
from attention.problem import AttentionProblem

PACKAGE = "nvidia-cudnn-frontend"
WHO = "cuDNN's front end, as it is set up here,"


def version() -> str:
    """The front end's, and that of the library, which is the one that torch has loaded."""
    import torch

    return f"{metadata.version(PACKAGE)} on cuDNN {torch.backends.cudnn.version()}"  # type: ignore[no-untyped-call]


def prepare(problem: AttentionProblem, given: Tensors) -> Callable[[], Any]:
    """A graph of one node, built for this problem. Raises UnsupportedError for one that torch passes on to cuDNN."""
    import cudnn
    import torch

    # Packed sequences have as many keys as queries here: both corners are one.
    refuse_others(WHO, problem, {WINDOW, VARLEN, ALIGNED} if problem.varlen else {WINDOW})
    if problem.head_dim != problem.head_dim_v:
        raise UnsupportedError(f"{WHO} has one head dim for all")
    left, starts = problem.window[0], given.extras.cu_seqlens_q
    if problem.window == (-1, -1) and not problem.varlen:
        raise UnsupportedError("torch passes this on to cuDNN itself")
    handle = cudnn.create_handle()
    floats = cudnn.data_type.HALF if problem.dtype == "float16" else cudnn.data_type.BFLOAT16
    wide = cudnn.data_type.FLOAT
    graph = cudnn.pygraph(io_data_type=floats, intermediate_data_type=wide, compute_data_type=wide, handle=handle)
    memory: dict[Any, torch.Tensor] = {}

    def held(tensor: torch.Tensor) -> Any:
        node = graph.tensor_like(tensor)
        memory[node] = tensor
        return node

    def sizes(tensor: torch.Tensor, longest: int) -> tuple[list[int], list[int]]:
        _, heads, _, dim = tensor.shape
        return [problem.batch, heads, longest, dim], list(tensor.stride())

    def placed(node: Any, tensor: torch.Tensor) -> Any:
        """Where packed sequences begin is said in elements; the stride of a batch then counts for nothing."""
        memory[node] = tensor
        if starts is not None:
            node.set_ragged_offset(held((starts.long() * tensor.stride(2)).reshape(-1, 1, 1, 1)))
        return node

    def operand(tensor: torch.Tensor, longest: int) -> Any:
        dim, stride = sizes(tensor, longest)
        return placed(graph.tensor(dim=dim, stride=stride, data_type=floats), tensor)

    asked: dict[str, Any] = {}
    if problem.causal or left >= 0:
        asked["diagonal_band_right_bound"] = 0
    if left >= 0:
        asked["diagonal_band_left_bound"] = left + 1  # cuDNN counts the query's own key
    if starts is not None:
        lengths = starts.diff().reshape(-1, 1, 1, 1)
        asked |= {"use_padding_mask": True, "seq_len_q": held(lengths), "seq_len_kv": held(lengths.clone())}
    out, _ = graph.sdpa(
        q=operand(given.query, problem.seq_q),
        k=operand(given.key, problem.seq_kv),
        v=operand(given.value, problem.seq_kv),
        attn_scale=problem.softmax_scale,
        generate_stats=False,
        **asked,
    )
    written = torch.empty_like(given.query)
    dim, stride = sizes(written, problem.seq_q)
    placed(out.set_output(True).set_dim(dim).set_stride(stride).set_data_type(floats), written)
    graph.build([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
    workspace = torch.empty(max(1, graph.get_workspace_size()), device=written.device, dtype=torch.uint8)

    def call() -> torch.Tensor:
        cudnn.set_stream(handle=handle, stream=torch.cuda.current_stream().cuda_stream)
        graph.execute(memory, workspace, handle=handle)
        return written

    return call
