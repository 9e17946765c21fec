// One tcgen05 instruction for either number of blocks that work together, the template's Group: inline PTX takes no
// parameter there.
#pragma once

#define PTX_TCGEN05(BEFORE, AFTER, ...)                                  \
  if constexpr (Group == 1)                                              \
    asm volatile(BEFORE ".cta_group::1" AFTER ::__VA_ARGS__ : "memory"); \
  else                                                                   \
    asm volatile(BEFORE ".cta_group::2" AFTER ::__VA_ARGS__ : "memory")
