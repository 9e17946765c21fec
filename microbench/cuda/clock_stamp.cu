// Two small kernels that every CUDA measurement leans on: the clock of each SM against the global timer, and the
// timer's own tick. clock64 counts per SM and is not synchronised between SMs, so a stamp is matched by SM number.
#include "ptx/clock.cuh"

// stamps[sm] = {clock64, globaltimer}. Launch more blocks than SMs: a busy SM takes one late, an idle one several.
extern "C" __global__ void clock_stamp(long long* stamps) {
  unsigned sm = ptx::smid();
  stamps[2 * sm] = ptx::clock64();
  stamps[2 * sm + 1] = (long long)ptx::globaltimer();
}

// ticks[0] = the smallest step seen between two readings of the timer (ns); ticks[1] = cycles of an empty bracket.
extern "C" __global__ void timer_tick(long long* ticks) {
  long long smallest = 1ll << 40;
  long long before = (long long)ptx::globaltimer();
  for (int seen = 0; seen < 64;) {
    long long now = (long long)ptx::globaltimer();
    if (now != before) {
      smallest = now - before < smallest ? now - before : smallest;
      before = now;
      ++seen;
    }
  }
  long long start = ptx::clock64();
  long long end = ptx::clock64();
  ticks[0] = smallest;
  ticks[1] = end - start;
}
