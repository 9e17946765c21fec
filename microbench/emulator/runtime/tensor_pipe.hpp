// tcgen05.mma, tcgen05.cp and the arrivals of commits queue where their thread issues them, and happen in that order at
// some moment. The PTX ISA promises the order only of products with one accumulator and of copies before products;
// NVIDIA's own kernels rely on all of it, since one unit executes them (Triton, Gluon tutorial 'TCGen05 copy').
#pragma once
#include "emulator/runtime/tensor_memory.hpp"

namespace emulator {

struct Ticket {
  TensorWork work;
  Knowledge knowledge;
};

// The next place in the running thread's pipe.
Ticket take_ticket(const char* what);
// The moment of its reads of shared memory.
Moment ticket_moment(const Ticket& ticket);
void enqueue(const Ticket& ticket, std::function<void()> action);

}  // namespace emulator
