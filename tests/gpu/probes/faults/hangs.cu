// Waits until the host raises a flag: for ever, where nobody does.
extern "C" __global__ void hangs(const volatile int* flag) {
  while (*flag == 0) {
  }
}
