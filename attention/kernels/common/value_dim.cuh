// Columns of V and of outputs. Where value dims are those of heads they are padded alike, and a launch says how many
// count; where they are unlike, VALUE_DIM, all of them do.
//
// config.cuh, which includes this behind kHeadDim, is the kernel's own.
#pragma once
#include "launch.cuh"

#ifdef VALUE_DIM
constexpr int kValueDim = VALUE_DIM;
constexpr bool kUnlike = true;
#else
constexpr int kValueDim = kHeadDim;
constexpr bool kUnlike = false;
#endif

__device__ __forceinline__ int out_columns(const Launch& launch) { return kUnlike ? kValueDim : launch.head_dim; }
