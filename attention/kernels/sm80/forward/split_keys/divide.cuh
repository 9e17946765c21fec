// Division by what is most often a power of two: heads, those of a group, parts of keys.
#pragma once

struct Divided {
  int quotient, remainder;
};

// Neither is negative. By a shift where it can be: an integer division is a chain of about 100 cycles.
__device__ __forceinline__ Divided divide(int number, int by) {
  if ((by & (by - 1)) == 0) return {number >> (31 - __clz(by)), number & (by - 1)};
  const int quotient = number / by;
  return {quotient, number - quotient * by};
}
