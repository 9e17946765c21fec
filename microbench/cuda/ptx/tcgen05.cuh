// The tensor cores of sm_100a, in four parts: tensor memory, descriptors, products and copies, registers.
#pragma once
#include "ptx/tcgen05_alloc.cuh"
#include "ptx/tcgen05_descriptor.cuh"
#include "ptx/tcgen05_ld.cuh"
#include "ptx/tcgen05_mma.cuh"
