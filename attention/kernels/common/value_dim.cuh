// Columns of V and of outputs. Where value dims are those of heads they are padded alike, and a launch says how many
// count; where they are unlike, VALUE_DIM says so, and they are held at the next multiple of VALUE_STEP.
//
// config.cuh, which includes this behind kHeadDim, is the kernel's own; it may define VALUE_STEP.
#pragma once
#include "launch.cuh"

#ifndef VALUE_STEP
#define VALUE_STEP 16
#endif

#ifdef VALUE_DIM
constexpr int kAskedValueDim = VALUE_DIM, kValueDim = (VALUE_DIM + VALUE_STEP - 1) / VALUE_STEP * VALUE_STEP;
constexpr bool kUnlike = true;
#else
constexpr int kAskedValueDim = 0, kValueDim = kHeadDim;
constexpr bool kUnlike = false;
#endif

__device__ __forceinline__ int out_columns(const Launch& launch) { return kUnlike ? kAskedValueDim : launch.head_dim; }
