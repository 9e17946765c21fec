// The C++ bodies of cuda/ptx/wgmma_tf32.cuh.
#pragma once

namespace ptx {

PTX_WGMMA_K_MAJOR(tf32, tf32, tf32, float, f32)

}  // namespace ptx
