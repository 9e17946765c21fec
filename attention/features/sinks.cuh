// A logit of each head.
#pragma once

__device__ __forceinline__ float logit_sinks(const Launch& launch, const Work& work) { return launch.sinks[work.head]; }
