"""CUDA kernels on a CPU: the source that runs on the GPU, executed by a C++ compiler's code, checked at every access.

    device = EmulatedDevice(mode="lazy")
    kernel = device.load(source, "attention.cu", kernel="attention")
    out = device.full((256, 64), np.nan, np.float32)
    kernel((4,), (128,), (device.asarray(q), out, 256), shared_mem=40960)

Every wrapper of cuda/ptx has a second body here. A CUDA thread is a fiber, a block runs on one OS thread, warp
collectives are meetings of 32 lanes. What a GPU leaves undefined is made to show:

- Shared memory, fresh buffers, and the destination of a copy in flight hold NaN; so do wgmma accumulators until their
  wait (those of integers an absurd one). Copies and wgmma happen at issue (`eager`), as late as the program allows
  (`lazy`) or at seeded moments (`random`): a kernel is right where it is right in all three.
- Blocks run by number, the blocks of a cluster together; from the last one on where the mode is lazy; in any order,
  and those of up to four clusters interleaved, where it is random. Some warps of a block may be asked to run before or
  behind all others, so that each role of a kernel can be the quickest one and the slowest.
- Reported with block and thread: a deadlock and who waits for what; a race in shared memory, a cluster's included; a
  race in global memory between threads of a block, or between blocks whatever their order; a shared or global access
  out of bounds or misaligned; lanes of a warp in different collectives; a write that the async proxy reads without
  fence.proxy.async; misuse of an mbarrier, of groups, of descriptors; a block that ends while another one of its
  cluster may still use its shared memory.

Limits. Linux on x86-64, with g++ or clang++. Shared memory only through ptx:: wrappers (`ptx::shared_base()`), never
through C++ pointers. Races: at four bytes' grain in shared memory, and not a copy that lands on what a thread stored
where a barrier stands between but no proxy fence; of a block's mbarriers the first 63 have a clock of their own, later
ones share one. In global memory the last write and two of the reads since are kept, and two writes of the same value
race as well; blocks of one cluster are one actor to other clusters; what a memcpy moves is not seen. Atomics order what
__threadfence made ready for what follows one there, in the order in which they happened here: a block that relies on
being last by number, and orders itself by an atomic as well, is found where the mode changes the order. Blocks that
wait for each other without being a cluster deadlock here, but for those that the random mode happens to run together.
Scopes of acquire and release are one, and a wait for the reads of a bulk store finishes its writes too, so that global
memory read back too soon is right. A plain global pointer is checked by guard pages: past a buffer's end (to within 256
bytes where its size is no multiple of that) and for 1 GiB on either side. A fragment that a wgmma reads from registers
is read at issue, and one that was written since wgmma.fence is not reported. Bank conflicts are counted where they are
asked for (shared_trace.py), and cost nothing; no time, no registers, no occupancy. Sums are in f32 in order of k, and
differ from a tensor core's in the last bits; those of fp8 in wgmma by more (wgmma_fp8.cuh). Approximations (ex2, tanh)
are the exact value rounded once.

Tensor memory (tcgen05), also of pairs of blocks. 128 lanes of 512 columns to a block, NaN until written and while a
write is on its way. Loads, stores, products and copies are ordered as the PTX ISA's memory model for tcgen05 says: by
wait::ld and wait::st, by commits, and by both fences around any other barrier; what is not ordered is a race, also
between two columns' users that overlap by mistake, and where only a fence is missing the report names it. Checked
besides: allocation and its end, the lanes that a warp reaches, every bit of both descriptors. Where the ISA and
NVIDIA's kernels differ, this is how: products and copies of one thread execute in the order of their issue, whatever
their accumulators; a register that is loaded holds NaN until wait::ld, where the ISA would honour its use before; a
product needs no fence after a barrier that orders shared memory alone. Products are of f16 and bf16, of e4m3
and e5m2, of tf32, and of integers of 8 bits. Not modelled: sums in f16, types of 6 and 4 bits, tf32 that is MN-major,
A of a pair in tensor memory with M = 128, block scales, sparsity, .ws, tcgen05.shift, 4x256b copies, packing to 16
bits. What an instruction touches is in a trace (tensor_trace.py).
"""

from microbench.emulator.device import MODES, EmulatedDevice, EmulatedKernel, Mode
from microbench.emulator.tensor_map import Swizzle, TensorMap

__all__ = ["MODES", "EmulatedDevice", "EmulatedKernel", "Mode", "Swizzle", "TensorMap"]
