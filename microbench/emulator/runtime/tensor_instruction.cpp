#include "emulator/runtime/tensor_instruction.hpp"

#include <iterator>

#include "emulator/runtime/block.hpp"

namespace emulator {

namespace {

constexpr u32 kMostColumns = 256;

// What a kind multiplies, by the number in the instruction descriptor, and the number of what it adds to.
struct KindRules {
  const char* name;
  u32 first_type;
  Type types[2];  // from the first on, beside kPadded; tf32 and e2m1 are alone in their kinds
  u32 sums;       // bits 4 and 5; of the scaled kinds these are B's byte
  u32 per_scale;  // neighbours in k under one factor
};
constexpr KindRules kKinds[] = {{"tcgen05.mma.kind::f16", 0, {Type::f16, Type::bf16}, 1, 0},
                                {"tcgen05.mma.kind::f8f6f4", 0, {Type::e4m3, Type::e5m2}, 1, 0},
                                {"tcgen05.mma.kind::tf32", 2, {Type::tf32, Type::tf32}, 1, 0},
                                {"tcgen05.mma.kind::i8", 0, {Type::u8, Type::s8}, 2, 0},
                                {"tcgen05.mma.kind::mxf8f6f4", 0, {Type::e4m3, Type::e5m2}, 0, 32},
                                {"tcgen05.mma.kind::mxf4", 1, {Type::e2m1, Type::e2m1}, 0, 32},
                                {"tcgen05.mma.kind::mxf4nvf4", 1, {Type::e2m1, Type::e2m1}, 0, 16}};
const KindRules& rules_of(TensorKind kind) { return kKinds[static_cast<u32>(kind)]; }

// The types of fewer bits of the kinds of e4m3, by their numbers from 3 on.
constexpr u32 kFirstPadded = 3;
constexpr Type kPadded[] = {Type::e2m3, Type::e3m2, Type::e2m1};

Type type_of(u32 field, TensorKind kind) {
  const KindRules& rules = rules_of(kind);
  if (rules.types[0] == Type::e4m3 && field >= kFirstPadded && field < kFirstPadded + std::size(kPadded))
    return kPadded[field - kFirstPadded];
  if (field < rules.first_type || field > rules.first_type + (rules.types[0] != rules.types[1]))
    fail("tcgen05.mma: type ", field, " of A or B in the instruction descriptor is none of this kind");
  return rules.types[field - rules.first_type];
}

// What N must be a multiple of.
u32 step_of(const Instruction& made, u32 group) {
  if (made.bytes == 1 && made.b_mn) return 16 * group;  // each block reads whole chunks of 16 bytes
  if (made.integers && (group == 2 || made.n > 32)) return 16 * group;
  if (made.scaled()) return 8 * group;
  return made.m == 64 ? 8 : 16;
}

struct Bits {
  u32 all;

  u32 operator()(u32 first, u32 last) const { return all >> first & ((2u << (last - first)) - 1); }
};

void read_sums(const Bits& field, const Instruction& made, u32 sums, const std::string& says) {
  if (field(0, 3) || field(6, 6) || field(23, 23) || field(29, 31))
    fail(says, "bits 0 to 3, 6, 23 and 29 to 31 are zero for dense products");
  if (field(4, 5) != sums) fail(says, "sums that are not ", (made.integers ? "s32" : "f32"), " are not modelled");
}

void read_scales(const Bits& field, Instruction& made, const std::string& says) {
  if (field(0, 3) || field(6, 6)) fail(says, "bits 0 to 3 and 6 are zero for dense products");
  if (field(31, 31)) fail(says, "K = 96, of sm_103a, is not modelled");
  made.scale = field(23, 23) ? Type::ue8m0 : Type::ue4m3;
  if (made.scale == Type::ue4m3 && made.per_scale != 16) fail(says, "scales of ue4m3 are of kind::mxf4nvf4 alone");
  made.a_byte = field(29, 30);
  made.b_byte = field(4, 5);
  const u32 factors = made.depth() / made.per_scale;  // they lie in bytes next to each other
  if (made.a_byte % factors || made.b_byte % factors)
    fail(says, "the bytes of ", factors, " scales begin at a multiple of ", factors);
}

void read_shape(const Instruction& made, u32 group, const std::string& says) {
  u32 most = 128 * group, least = made.scaled() && group == 1 ? most : 64 * group, step = step_of(made, group);
  if (made.m != least && made.m != most) fail(says, "M is ", made.m, ", and may be ", least, " or ", most);
  if (!made.n || made.n > kMostColumns || made.n % step)
    fail(says, "N is ", made.n, ", and may be a multiple of ", step, " up to 256");
}

}  // namespace

const char* name_of(TensorKind kind) { return rules_of(kind).name; }

Instruction read_instruction(u32 bits, TensorKind kind, u32 group) {
  const Bits field{bits};
  Instruction made{};
  made.m = field(24, 28) * 16;
  made.n = field(17, 22) * 8;
  made.a = type_of(field(7, 9), kind);
  made.b = type_of(field(10, 12), kind);
  made.bytes = bytes_of(made.a);
  made.packed = kind == TensorKind::mxf4 || kind == TensorKind::nvf4 ? 2 : 1;
  made.a_negative = field(13, 13);
  made.b_negative = field(14, 14);
  made.a_mn = field(15, 15);
  made.b_mn = field(16, 16);
  made.integers = kind == TensorKind::i8;
  made.per_scale = rules_of(kind).per_scale;
  std::string says = "tcgen05.mma: instruction descriptor " + hex(bits) + ": ";
  if (made.scaled())
    read_scales(field, made, says);
  else
    read_sums(field, made, rules_of(kind).sums, says);
  if (made.integers && (made.a_negative || made.b_negative)) fail(says, "integers are not negated");
  for (Type along : {made.a_mn ? made.a : Type::f16, made.b_mn ? made.b : Type::f16})
    if (bits_in(along) < 8) fail(says, "elements of ", bits_in(along), " bits are K-major");
  if (kind == TensorKind::tf32 && (made.a_mn || made.b_mn)) fail(says, "tf32 that is MN-major is not modelled");
  read_shape(made, group, says);
  return made;
}

}  // namespace emulator
