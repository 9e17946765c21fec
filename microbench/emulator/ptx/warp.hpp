// The C++ bodies of cuda/ptx/warp.cuh.
#pragma once

namespace ptx {

#define PTX_REDUX(OP, TYPE, HOW)                                                                              \
  inline TYPE redux_##OP(TYPE value, unsigned mask = ~0u) {                                                   \
    return static_cast<TYPE>(emulator::reduce(emulator::Reduction::HOW, mask, static_cast<unsigned>(value))); \
  }

PTX_REDUX(add, int, add)
PTX_REDUX(min, int, min_signed)
PTX_REDUX(max, int, max_signed)
PTX_REDUX(add, unsigned, add)
PTX_REDUX(min, unsigned, min)
PTX_REDUX(max, unsigned, max)
PTX_REDUX(and, unsigned, bit_and)
PTX_REDUX(or, unsigned, bit_or)
PTX_REDUX(xor, unsigned, bit_xor)
#undef PTX_REDUX

#define PTX_REDUX_F32(OP)                                                                                \
  inline float redux_##OP(float value) {                                                                 \
    for (int lanes = 16; lanes; lanes /= 2) value = f##OP##f(value, __shfl_xor_sync(~0u, value, lanes)); \
    return value;                                                                                        \
  }

PTX_REDUX_F32(min)
PTX_REDUX_F32(max)
#undef PTX_REDUX_F32

}  // namespace ptx
