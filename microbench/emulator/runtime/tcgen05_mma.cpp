// tcgen05.mma and tcgen05.cp: what their descriptors say, and the arithmetic. Layouts are those that
// cuda/ptx/tcgen05_mma.cuh and tcgen05_descriptor.cuh state.
#include <cmath>
#include <cstring>

#include "emulator/runtime/matrix.hpp"
#include "emulator/runtime/tensor_pipe.hpp"

namespace emulator {

namespace {

constexpr u32 kDepthBytes = 32, kMostRows = 128, kMostColumns = 256;

float f32_of(u32 word) {
  float value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

u32 bits_of(float value) {
  u32 word;
  std::memcpy(&word, &value, sizeof word);
  return word;
}

// e4m3 has no infinity, and NaN where all bits are set; e5m2 is the upper half of an f16.
float from_e4m3(u32 bits) {
  int exponent = bits >> 3 & 15, mantissa = bits & 7;
  float size = exponent ? std::ldexp(1.f + mantissa / 8.f, exponent - 7) : std::ldexp(mantissa / 8.f, -6);
  if ((bits & 0x7F) == 0x7F) size = f32_of(kNaN);
  return bits & 0x80 ? -size : size;
}
float from_e5m2(u32 bits) { return widen(static_cast<u16>(bits << 8), Type::f16); }
float from_f16(u32 bits) { return widen(static_cast<u16>(bits), Type::f16); }
float from_bf16(u32 bits) { return widen(static_cast<u16>(bits), Type::bf16); }

using Decode = float (*)(u32);

struct Instruction {
  u32 m, n, bytes;  // `bytes`: of an element
  Decode a, b;
  bool a_mn, b_mn, a_negative, b_negative;

  u32 depth() const { return kDepthBytes / bytes; }
};

Decode decode_of(u32 type, bool fp8) {
  static const Decode types[2][2] = {{from_f16, from_bf16}, {from_e4m3, from_e5m2}};
  if (type > 1)
    fail("tcgen05.mma: type " + std::to_string(type) + " of A or B in the instruction descriptor is none of this kind" +
         (fp8 ? ", or one of 6 or 4 bits, which is not modelled" : ""));
  return types[fp8][type];
}

Instruction read_instruction(u32 bits, bool fp8) {
  auto field = [bits](u32 first, u32 last) { return bits >> first & ((2u << (last - first)) - 1); };
  Instruction made{field(24, 28) * 16,
                   field(17, 22) * 8,
                   fp8 ? 1u : 2u,
                   decode_of(field(7, 9), fp8),
                   decode_of(field(10, 12), fp8),
                   field(15, 15) != 0,
                   field(16, 16) != 0,
                   field(13, 13) != 0,
                   field(14, 14) != 0};
  std::string says = "tcgen05.mma: instruction descriptor " + hex(bits) + ": ";
  if (field(0, 3) || field(6, 6) || field(23, 23) || field(29, 31))
    fail(says + "bits 0 to 3, 6, 23 and 29 to 31 are zero for dense products");
  if (field(4, 5) != 1) fail(says + "sums that are not f32 are not modelled");
  if (made.m != 64 && made.m != 128) fail(says + "M is " + std::to_string(made.m) + ", and may be 64 or 128");
  u32 step = made.m == 64 ? 8 : 16;
  if (!made.n || made.n > kMostColumns || made.n % step)
    fail(says + "N is " + std::to_string(made.n) + ", and may be a multiple of " + std::to_string(step) + " up to 256");
  return made;
}

Matrix read_matrix(u64 bits, u32 bytes, bool mn_major, const char* what) {
  static const int spans[] = {0, -1, 128, -1, 64, -1, 32, -1};
  auto field = [bits](u32 shift) { return static_cast<u32>(bits >> shift & 0x3FFF) << 4; };
  std::string says = std::string(what) + ": matrix descriptor " + hex(bits) + ": ";
  if ((bits >> 46 & 7) != 1) fail(says + "bits 46 to 48 are the constant 1; the descriptor of wgmma is another one");
  if (bits >> 49 & 15) fail(says + "a base offset or an absolute leading offset is not modelled");
  if (spans[bits >> 61] < 0) fail(says + "its swizzle is not modelled");
  return {field(0), field(16), field(32), static_cast<u32>(spans[bits >> 61]), bytes, mn_major};
}

u32 lane_of(u32 row, u32 m) { return m == 64 ? row / 16 * 32 + row % 16 : row; }

struct Product {
  Instruction shape;
  bool a_in_tensor_memory, accumulate;
  u32 d_column, a_column;
  Matrix a, b;
  Region d;
  u64 number;

  u32 a_element(u32 row, u32 k) const {
    if (!a_in_tensor_memory) return a.element(row, k, "tcgen05.mma");
    u32 to_a_word = 4 / shape.bytes, word = tensor_word(lane_of(row, shape.m), a_column + k / to_a_word, number);
    return word >> k % to_a_word * 8 * shape.bytes & (shape.bytes == 1 ? 0xFF : 0xFFFF);
  }

  void operator()() const {
    static float rows[kMostRows][kDepthBytes], tile[kDepthBytes][kMostColumns], sums[kMostColumns];
    const float a_sign = shape.a_negative ? -1.f : 1.f, b_sign = shape.b_negative ? -1.f : 1.f;
    for (u32 row = 0; row < shape.m; ++row)
      for (u32 k = 0; k < shape.depth(); ++k) rows[row][k] = a_sign * shape.a(a_element(row, k));
    for (u32 k = 0; k < shape.depth(); ++k)
      for (u32 n = 0; n < shape.n; ++n) tile[k][n] = b_sign * shape.b(b.element(n, k, "tcgen05.mma"));
    for (u32 row = 0; row < shape.m; ++row) {
      u32 lane = lane_of(row, shape.m);
      for (u32 n = 0; n < shape.n; ++n) sums[n] = 0.f;
      for (u32 k = 0; k < shape.depth(); ++k)
        for (u32 n = 0; n < shape.n; ++n) sums[n] += rows[row][k] * tile[k][n];
      for (u32 n = 0; n < shape.n; ++n) {
        float before = accumulate ? f32_of(tensor_word(lane, d_column + n, number)) : 0.f;
        set_tensor_word(lane, d_column + n, bits_of(before + sums[n]));
      }
    }
    finish_write(d, number);
  }
};

u32 first_column(u32 address, const char* what) {
  if (address >> 16) fail(std::string(what) + ": tensor memory address " + hex(address) + " does not begin at lane 0");
  return address;
}

bool overlap(const Region& a, const Region& b) {
  return a.groups & b.groups && a.column < b.column + b.columns && b.column < a.column + a.columns;
}

}  // namespace

void tcgen05_mma(TensorProduct given, u32 d, u64 a, u64 b) {
  const char* what = given.fp8 ? "tcgen05.mma.kind::f8f6f4" : "tcgen05.mma.kind::f16";
  check_group(given.group, what);
  Product product{};
  product.shape = read_instruction(given.instruction, given.fp8);
  product.accumulate = given.accumulate;
  product.a_in_tensor_memory = given.a_in_tensor_memory;
  const Instruction& shape = product.shape;
  product.d_column = first_column(d, what);
  product.d = {shape.m == 64 ? kLowerGroups : kAllGroups, product.d_column, shape.n};
  require_allocated(product.d, what);
  product.b = read_matrix(b, shape.bytes, shape.b_mn, what);
  Ticket ticket = take_ticket(what);
  const Clock& seen = clock_of(running->thread);
  if (given.a_in_tensor_memory) {
    if (shape.a_mn) fail(std::string(what) + ": A in tensor memory is K-major");
    product.a_column = first_column(static_cast<u32>(a), what);
    Region region{product.d.groups, product.a_column, kDepthBytes / 4};
    require_allocated(region, what);
    if (overlap(region, product.d)) fail(std::string(what) + ": A overlaps D at " + region_name(product.d));
    note_tensor_read(region, ticket.work, ticket.knowledge);
  } else {
    product.a = read_matrix(a, shape.bytes, shape.a_mn, what);
    product.a.note(shape.m, shape.depth(), ticket_moment(ticket), seen, what);
  }
  product.b.note(shape.n, shape.depth(), ticket_moment(ticket), seen, what);
  note_tensor_write(product.d, ticket.work, ticket.knowledge);
  product.number = announce(product.d);
  enqueue(ticket, product);
}

void tcgen05_cp(TensorCopy given, u32 address, u64 from) {
  check_group(given.group, "tcgen05.cp");
  u32 column = first_column(address, "tcgen05.cp"), words = given.row_bytes / 4;
  Region to{kAllGroups, column, words};
  require_allocated(to, "tcgen05.cp");
  Matrix matrix = read_matrix(from, 4, false, "tcgen05.cp");
  Ticket ticket = take_ticket("tcgen05.cp");
  matrix.note(given.rows, words, ticket_moment(ticket), clock_of(running->thread), "tcgen05.cp");
  note_tensor_write(to, ticket.work, ticket.knowledge);
  u64 number = announce(to);
  enqueue(ticket, [=] {
    for (u32 lane = 0; lane < kLanes; ++lane) {
      u32 half = given.spread == Spread::warps_02_13 ? lane / 32 % 2 : lane / 64;
      u32 row = given.spread == Spread::once        ? lane
                : given.spread == Spread::warps_all ? lane % 32
                                                    : half * 32 + lane % 32;
      for (u32 i = 0; i < words; ++i) set_tensor_word(lane, column + i, matrix.element(row, i, "tcgen05.cp"));
    }
    finish_write(to, number);
  });
}

}  // namespace emulator
