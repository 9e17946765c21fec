// Nothing: what is measured is that it can be launched.
extern "C" __global__ void steady() {}
