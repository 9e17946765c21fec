// tcgen05.mma: the arithmetic, and which words it reads and writes. Layouts are those that cuda/ptx/tcgen05_mma.cuh and
// tcgen05_descriptor.cuh state.
#include <algorithm>

#include "emulator/runtime/tensor_operand.hpp"
#include "emulator/runtime/tensor_pipe.hpp"
#include "emulator/runtime/tensor_scales.hpp"
#include "emulator/runtime/tensor_trace.hpp"

namespace emulator {

namespace {

constexpr u32 kMostColumns = 256, kMostDepth = 2 * kDepthBytes;

// One product of one block, or of a pair: then each block has half of the rows of A and D, and half of the columns of
// B.
struct Product {
  Instruction shape;
  bool a_in_tensor_memory, accumulate;
  u32 group, resident;  // of the block that asked
  u32 d_column, a_column;
  Matrix a, b;  // in that block; the partner's lie at the same offsets
  Scales a_scales, b_scales;
  u64 number;

  u32 first_block() const { return group == 2 ? resident & ~1u : resident; }
  u32 rows() const { return shape.m / group; }  // of one block

  // D of a block, and where an element of it lies. 64 rows: in the lower half of each warp's lanes, or in a pair in all
  // lanes, the second half of the columns behind the first half of the rows.
  bool folded() const { return group == 2 && rows() == 64; }
  Region d(u32 home) const {
    return {home, rows() == 64 && !folded() ? kLowerGroups : kAllGroups, d_column, folded() ? shape.n / 2 : shape.n};
  }
  u32 lane(u32 row) const { return rows() == 64 && group == 1 ? row / 16 * 32 + row % 16 : row; }
  u32 d_lane(u32 row, u32 n) const { return folded() ? row + n / (shape.n / 2) * 64 : lane(row); }
  u32 d_at(u32 n) const { return d_column + (folded() ? n % (shape.n / 2) : n); }

  u32 a_unit(u32 home, u32 row, u32 unit) const {
    if (!a_in_tensor_memory) return in_resident(a, home).element(row, unit, "tcgen05.mma");
    u32 to_a_word = 4 / shape.bytes, word = tensor_word(home, lane(row), a_column + unit / to_a_word, number);
    return word >> unit % to_a_word * 8 * shape.bytes & (~0u >> (32 - 8 * shape.bytes));
  }

  // Element k of what `unit` gives, units of one or two elements, or bytes of a padded type: the lower bits hold the
  // first. What pads is not read.
  template <class Unit>
  float element(u32 k, Type type, const Unit& unit) const {
    if (shape.padded(type)) {
      const u32 width = bits_in(type), bit = k % 16 * width, at = k / 16 * 16 + bit / 8, first = bit % 8;
      const u32 bits = unit(at) | (first + width > 8 ? unit(at + 1) << 8 : 0u);
      return widen(bits >> first & ((1u << width) - 1), type);
    }
    return widen(unit(k / shape.packed) >> k % shape.packed * 4, type);
  }

  void multiply(u32 home, const float (&tile)[kMostDepth][kMostColumns]) const {
    static float sums[kMostColumns];
    const float sign = shape.a_negative ? -1.f : 1.f;
    for (u32 row = 0; row < rows(); ++row) {
      std::fill_n(sums, shape.n, 0.f);
      for (u32 k = 0; k < shape.depth(); ++k) {
        float factor = sign * element(k, shape.a, [&](u32 unit) { return a_unit(home, row, unit); });
        if (shape.scaled()) factor *= a_scales.factor(home, row, k, number);
        for (u32 n = 0; n < shape.n; ++n) sums[n] += factor * tile[k][n];
      }
      for (u32 n = 0; n < shape.n; ++n) {
        u32 lane = d_lane(row, n), column = d_at(n);
        u32 before = accumulate ? tensor_word(home, lane, column, number) : 0u;
        u32 after = shape.integers ? add_s32(before, sums[n], Sums::s32) : bits_of(f32_of(before) + sums[n]);
        set_tensor_word(home, lane, column, after);
      }
    }
    finish_write(d(home), number);
  }

  // B as the block `home` scales it: both halves of a pair's columns, with the factors that `home` has.
  void fill(u32 home, float (&tile)[kMostDepth][kMostColumns]) const {
    const float sign = shape.b_negative ? -1.f : 1.f;
    const u32 columns = shape.n / group;
    for (u32 n = 0; n < shape.n; ++n) {
      const Matrix matrix = in_resident(b, first_block() + n / columns);
      auto unit = [&](u32 at) { return matrix.element(n % columns, at, "tcgen05.mma"); };
      for (u32 k = 0; k < shape.depth(); ++k)
        tile[k][n] = sign * element(k, shape.b, unit) * (shape.scaled() ? b_scales.factor(home, n, k, number) : 1.f);
    }
  }

  void operator()() const {
    static float tile[kMostDepth][kMostColumns];
    fill(first_block(), tile);
    for (u32 each = 0; each < group; ++each) {
      if (each && shape.scaled()) fill(first_block() + each, tile);
      multiply(first_block() + each, tile);
    }
  }
};

bool overlap(const Region& a, const Region& b) {
  return a.groups & b.groups && a.column < b.column + b.columns && b.column < a.column + a.columns;
}

// What one block's share of a product reads and writes.
void note_product(const Product& product, u32 home, const Ticket& ticket) {
  const Instruction& shape = product.shape;
  const char* what = ticket.work.what;
  const Clock& seen = clock_of(running->thread);
  Region d = product.d(home);
  require_allocated(d, what);
  if (product.a_in_tensor_memory) {
    Region a{home, d.groups, product.a_column, kDepthBytes / 4};
    require_allocated(a, what);
    if (overlap(a, d)) fail(what, ": A overlaps D at ", region_name(d));
    trace_tensor(Tensor::operand, a);
    note_tensor_read(a, ticket.work, ticket.knowledge);
  } else {
    in_resident(product.a, home).note(0, product.rows(), shape.units(), ticket_moment(ticket), seen, what);
  }
  u32 columns = shape.n / product.group;
  in_resident(product.b, home).note(0, columns, shape.units(), ticket_moment(ticket), seen, what);
  if (shape.scaled())
    for (const Scales& scales : {product.a_scales, product.b_scales}) {
      Region factors = scales.region(home);
      require_allocated(factors, what);
      if (overlap(factors, d)) fail(what, ": scales overlap D at ", region_name(d));
      trace_tensor(Tensor::operand, factors);
      note_tensor_read(factors, ticket.work, ticket.knowledge);
    }
  trace_tensor(Tensor::product, d, product.accumulate);
  note_tensor_write(d, ticket.work, ticket.knowledge);
}

}  // namespace

void tcgen05_mma(TensorProduct given, u32 d, u64 a, u64 b) {
  const char* what = name_of(given.kind);
  check_group(given.group, what);
  Product product{read_instruction(given.instruction, given.kind, given.group),
                  given.a_in_tensor_memory,
                  given.accumulate,
                  given.group,
                  running->resident(),
                  first_column(d, what)};
  const Instruction& shape = product.shape;
  if (given.a_in_tensor_memory) {
    if (shape.a_mn) fail(what, ": A in tensor memory is K-major");
    if (shape.padded(shape.a)) fail(what, ": A of 6 or 4 bits in tensor memory is not modelled");
    if (product.folded()) fail(what, ": A in tensor memory with M = 128 of a pair is not modelled");
    product.a_column = first_column(static_cast<u32>(a), what);
  } else {
    product.a = read_matrix(a, shape.bytes, shape.a_mn, what);
  }
  product.b = read_matrix(b, shape.bytes, shape.b_mn, what);
  if (shape.scaled()) {
    product.a_scales = {
        first_column(given.scale_a, what), product.rows(), shape.a_byte, shape.per_scale, shape.scale, 1};
    product.b_scales = {first_column(given.scale_b, what), shape.n, shape.b_byte, shape.per_scale, shape.scale,
                        product.folded() ? 2u : 1u};
  }
  Ticket ticket = take_ticket(what);
  for (u32 each = 0; each < given.group; ++each) note_product(product, product.first_block() + each, ticket);
  product.number = next_number();
  for (u32 each = 0; each < given.group; ++each) announce(product.d(product.first_block() + each), product.number);
  enqueue(ticket, product);
}

}  // namespace emulator
