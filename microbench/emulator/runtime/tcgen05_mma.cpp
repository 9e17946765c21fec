// tcgen05.mma and tcgen05.cp: what their descriptors say, and the arithmetic. Layouts are those that
// cuda/ptx/tcgen05_mma.cuh and tcgen05_descriptor.cuh state.
#include <algorithm>

#include "emulator/runtime/matrix.hpp"
#include "emulator/runtime/number.hpp"
#include "emulator/runtime/tensor_pipe.hpp"
#include "emulator/runtime/tensor_trace.hpp"

namespace emulator {

namespace {

constexpr u32 kDepthBytes = 32, kMostColumns = 256;

struct Instruction {
  u32 m, n, bytes;  // `bytes`: of an element
  Type a, b;
  bool a_mn, b_mn, a_negative, b_negative;

  u32 depth() const { return kDepthBytes / bytes; }
};

// What a kind multiplies, by the number in the instruction descriptor, and the number of what it adds to.
struct KindRules {
  const char* name;
  u32 first_type;
  Type types[2];  // from the first on; tf32 is the only one of its kind
  u32 sums;
};
constexpr KindRules kKinds[] = {{"tcgen05.mma.kind::f16", 0, {Type::f16, Type::bf16}, 1},
                                {"tcgen05.mma.kind::f8f6f4", 0, {Type::e4m3, Type::e5m2}, 1},
                                {"tcgen05.mma.kind::tf32", 2, {Type::tf32, Type::tf32}, 1},
                                {"tcgen05.mma.kind::i8", 0, {Type::u8, Type::s8}, 2}};
const KindRules& rules_of(TensorKind kind) { return kKinds[static_cast<u32>(kind)]; }

Type type_of(u32 field, TensorKind kind) {
  const KindRules& rules = rules_of(kind);
  if (field < rules.first_type || field > rules.first_type + (kind != TensorKind::tf32))
    fail("tcgen05.mma: type ", field, " of A or B in the instruction descriptor is none of this kind",
         (kind == TensorKind::f8 ? ", or one of 6 or 4 bits, which is not modelled" : ""));
  return rules.types[field - rules.first_type];
}

// What N must be a multiple of.
u32 step_of(const Instruction& made, TensorKind kind, u32 group) {
  if (made.bytes == 1 && made.b_mn) return 16 * group;  // each block reads whole chunks of 16 bytes
  if (kind == TensorKind::i8 && (group == 2 || made.n > 32)) return 16 * group;
  return made.m == 64 ? 8 : 16;
}

Instruction read_instruction(u32 bits, TensorKind kind, u32 group) {
  auto field = [bits](u32 first, u32 last) { return bits >> first & ((2u << (last - first)) - 1); };
  Instruction made{};
  made.m = field(24, 28) * 16;
  made.n = field(17, 22) * 8;
  made.a = type_of(field(7, 9), kind);
  made.b = type_of(field(10, 12), kind);
  made.bytes = bytes_of(made.a);
  made.a_negative = field(13, 13);
  made.b_negative = field(14, 14);
  made.a_mn = field(15, 15);
  made.b_mn = field(16, 16);
  std::string says = "tcgen05.mma: instruction descriptor " + hex(bits) + ": ";
  if (field(0, 3) || field(6, 6) || field(23, 23) || field(29, 31))
    fail(says, "bits 0 to 3, 6, 23 and 29 to 31 are zero for dense products");
  if (field(4, 5) != rules_of(kind).sums)
    fail(says, "sums that are not ", (kind == TensorKind::i8 ? "s32" : "f32"), " are not modelled");
  if (kind == TensorKind::i8 && (made.a_negative || made.b_negative)) fail(says, "integers are not negated");
  if (kind == TensorKind::tf32 && (made.a_mn || made.b_mn)) fail(says, "tf32 that is MN-major is not modelled");
  u32 most = 128 * group, least = 64 * group, step = step_of(made, kind, group);
  if (made.m != least && made.m != most) fail(says, "M is ", made.m, ", and may be ", least, " or ", most);
  if (!made.n || made.n > kMostColumns || made.n % step)
    fail(says, "N is ", made.n, ", and may be a multiple of ", step, " up to 256");
  return made;
}

Matrix read_matrix(u64 bits, u32 bytes, bool mn_major, const char* what) {
  static const int spans[] = {0, -1, 128, -1, 64, -1, 32, -1};
  auto field = [bits](u32 shift) { return static_cast<u32>(bits >> shift & 0x3FFF) << 4; };
  std::string says = std::string(what) + ": matrix descriptor " + hex(bits) + ": ";
  if ((bits >> 46 & 7) != 1) fail(says, "bits 46 to 48 are the constant 1; the descriptor of wgmma is another one");
  if (bits >> 49 & 15) fail(says, "a base offset or an absolute leading offset is not modelled");
  if (spans[bits >> 61] < 0) fail(says, "its swizzle is not modelled");
  return {field(0) | window(), field(16), field(32), static_cast<u32>(spans[bits >> 61]), bytes, mn_major};
}

Matrix in_resident(Matrix matrix, u32 resident) {
  matrix.start = in_block(matrix.start, resident);
  return matrix;
}

// One product of one block, or of a pair: then each block has half of the rows of A and D, and half of the columns of
// B.
struct Product {
  Instruction shape;
  bool integers, a_in_tensor_memory, accumulate;
  u32 group, resident;  // of the block that asked
  u32 d_column, a_column;
  Matrix a, b;  // in that block; the partner's lie at the same offsets
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

  u32 a_element(u32 home, u32 row, u32 k) const {
    if (!a_in_tensor_memory) return in_resident(a, home).element(row, k, "tcgen05.mma");
    u32 to_a_word = 4 / shape.bytes, word = tensor_word(home, lane(row), a_column + k / to_a_word, number);
    return word >> k % to_a_word * 8 * shape.bytes & (~0u >> (32 - 8 * shape.bytes));
  }

  void multiply(u32 home, const float (&tile)[kDepthBytes][kMostColumns]) const {
    static float sums[kMostColumns];
    const float sign = shape.a_negative ? -1.f : 1.f;
    for (u32 row = 0; row < rows(); ++row) {
      std::fill_n(sums, shape.n, 0.f);
      for (u32 k = 0; k < shape.depth(); ++k) {
        const float factor = sign * widen(a_element(home, row, k), shape.a);
        for (u32 n = 0; n < shape.n; ++n) sums[n] += factor * tile[k][n];
      }
      for (u32 n = 0; n < shape.n; ++n) {
        u32 lane = d_lane(row, n), column = d_at(n);
        u32 before = accumulate ? tensor_word(home, lane, column, number) : 0u;
        u32 after = integers ? add_s32(before, sums[n], Sums::s32) : bits_of(f32_of(before) + sums[n]);
        set_tensor_word(home, lane, column, after);
      }
    }
    finish_write(d(home), number);
  }

  void operator()() const {
    static float tile[kDepthBytes][kMostColumns];
    const float sign = shape.b_negative ? -1.f : 1.f;
    const u32 columns = shape.n / group;
    for (u32 n = 0; n < shape.n; ++n) {
      const Matrix matrix = in_resident(b, first_block() + n / columns);
      for (u32 k = 0; k < shape.depth(); ++k)
        tile[k][n] = sign * widen(matrix.element(n % columns, k, "tcgen05.mma"), shape.b);
    }
    for (u32 each = 0; each < group; ++each) multiply(first_block() + each, tile);
  }
};

u32 first_column(u32 address, const char* what) {
  if (address >> 16) fail(what, ": tensor memory address ", hex(address), " does not begin at lane 0");
  return address;
}

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
    in_resident(product.a, home).note(0, product.rows(), shape.depth(), ticket_moment(ticket), seen, what);
  }
  u32 columns = shape.n / product.group;
  in_resident(product.b, home).note(0, columns, shape.depth(), ticket_moment(ticket), seen, what);
  trace_tensor(Tensor::product, d, product.accumulate);
  note_tensor_write(d, ticket.work, ticket.knowledge);
}

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

void tcgen05_mma(TensorProduct given, u32 d, u64 a, u64 b) {
  const char* what = rules_of(given.kind).name;
  check_group(given.group, what);
  Product product{read_instruction(given.instruction, given.kind, given.group),
                  given.kind == TensorKind::i8,
                  given.a_in_tensor_memory,
                  given.accumulate,
                  given.group,
                  running->resident(),
                  first_column(d, what)};
  const Instruction& shape = product.shape;
  if (given.a_in_tensor_memory) {
    if (shape.a_mn) fail(what, ": A in tensor memory is K-major");
    if (product.folded()) fail(what, ": A in tensor memory with M = 128 of a pair is not modelled");
    product.a_column = first_column(static_cast<u32>(a), what);
  } else {
    product.a = read_matrix(a, shape.bytes, shape.a_mn, what);
  }
  product.b = read_matrix(b, shape.bytes, shape.b_mn, what);
  Ticket ticket = take_ticket(what);
  for (u32 each = 0; each < given.group; ++each) note_product(product, product.first_block() + each, ticket);
  product.number = next_number();
  for (u32 each = 0; each < given.group; ++each) announce(product.d(product.first_block() + each), product.number);
  enqueue(ticket, product);
}

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
