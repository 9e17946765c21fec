"""cuDNN's attention through torch on Blackwell: tcgen05, which no probe of ours has measured yet."""

from attention.kernels.sm80.forward.torch_cudnn.variant import PLAN_SECONDS, notes, refuses
from attention.variant import Variant

VARIANT = Variant(
    summary="torch: cuDNN attention on tcgen05",
    owner="torch",
    archs=("sm100a", "sm103a"),
    refuses=refuses,
    first_seconds=PLAN_SECONDS,
    rank=0,
    notes=notes,
)
