// tcgen05.cp: rows of shared memory to lanes, in the pipe of the thread that asks. Shapes: cuda/ptx/tcgen05_mma.cuh.
#include "emulator/runtime/tensor_operand.hpp"
#include "emulator/runtime/tensor_pipe.hpp"
#include "emulator/runtime/tensor_trace.hpp"

namespace emulator {

namespace {

void copy_rows(const TensorCopy& copy, const Matrix& from, u32 home, u32 column) {
  for (u32 lane = 0; lane < kLanes; ++lane) {
    u32 row = lane;
    if (copy.spread == Spread::warps_02_13) row = lane % 64;
    if (copy.spread == Spread::warps_01_23) row = lane / 64 * 32 + lane % 32;
    if (copy.spread == Spread::warps_all) row = lane % 32;
    for (u32 i = 0; i < copy.row_bytes / 4; ++i)
      set_tensor_word(home, lane, column + i, from.element(row, i, "tcgen05.cp"));
  }
}

}  // namespace

void tcgen05_cp(TensorCopy given, u32 address, u64 from) {
  const char* what = "tcgen05.cp";
  check_group(given.group, what);
  u32 column = first_column(address, what), words = given.row_bytes / 4;
  Matrix matrix = read_matrix(from, 4, false, what);
  Ticket ticket = take_ticket(what);
  u32 first = given.group == 2 ? running->resident() & ~1u : running->resident();
  u64 number = next_number();
  for (u32 home = first; home < first + given.group; ++home) {
    Region to{home, kAllGroups, column, words};
    require_allocated(to, what);
    in_resident(matrix, home).note(0, given.rows, words, ticket_moment(ticket), clock_of(running->thread), what);
    trace_tensor(Tensor::product, to);
    note_tensor_write(to, ticket.work, ticket.knowledge);
    announce(to, number);
  }
  enqueue(ticket, [=] {
    for (u32 home = first; home < first + given.group; ++home) {
      copy_rows(given, in_resident(matrix, home), home, column);
      finish_write({home, kAllGroups, column, words}, number);
    }
  });
}

}  // namespace emulator
