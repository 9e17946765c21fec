// TMA: boxes of a tensor of one to five dimensions, loaded, stored and added, under every swizzle.
#include "emulator/runtime/tensor_copy.hpp"

#include <algorithm>
#include <cstring>

#include "emulator/runtime/global_memory.hpp"
#include "emulator/runtime/shared_memory.hpp"

namespace emulator {

namespace {

constexpr u32 kChunk = 16;

struct Box {
  TensorMap map;
  int at[5];
  u32 shared;

  u32 row_bytes() const { return map.box[0] * map.element_bytes; }
  u32 rows() const {
    u32 rows = 1;
    for (u32 d = 1; d < map.rank; ++d) rows *= map.box[d];
    return rows;
  }
  u32 bytes() const { return rows() * row_bytes(); }

  // The address of column 0 of a row of the box; false where the row lies outside of the tensor.
  bool row_address(u32 row, long long& address) const {
    address = static_cast<long long>(map.address);
    for (u32 d = 1; d < map.rank; ++d) {
      long long index = at[d] + static_cast<long long>(row % map.box[d]);
      row /= map.box[d];
      if (index < 0 || index >= static_cast<long long>(map.extents[d])) return false;
      address += index * static_cast<long long>(map.strides[d - 1]);
    }
    return true;
  }
  bool column_inside(u32 column) const {
    long long index = at[0] + static_cast<long long>(column);
    return index >= 0 && index < static_cast<long long>(map.extents[0]);
  }
  u8* shared_element(u32 row, u32 column) const {
    u32 offset = row * row_bytes() + column * map.element_bytes;
    u32 inside = offset % kChunk;
    return landing_at(swizzled(shared + offset - inside, map.swizzle ? map.swizzle : 1), kChunk, kChunk,
                      "cp.async.bulk.tensor") +
           inside;
  }
};

Box box_of(const void* map, u32 shared, const int* at, u32 rank) {
  Box box{};
  std::memcpy(&box.map, map, sizeof box.map);
  const TensorMap& m = box.map;
  if (m.magic != kTensorMapMagic) fail("cp.async.bulk.tensor: this is no tensor map of the emulator");
  if (m.rank != rank) fail("cp.async.bulk.tensor.", rank, "d of a map of ", m.rank, " dimensions");
  u64 last = m.extents[0] * m.element_bytes;
  for (u32 d = 1; d < rank; ++d) last += (m.extents[d] - 1) * m.strides[d - 1];
  global_at(m.address, static_cast<u32>(last), 16, "cp.async.bulk.tensor");
  std::memcpy(box.at, at, rank * sizeof(int));
  // Not in the PTX ISA; a Hopper GPU traps: cudaErrorIllegalInstruction.
  if (at[0] * static_cast<long long>(m.element_bytes) % kChunk)
    fail("cp.async.bulk.tensor: a box starts at element ", at[0],
         " of the innermost dimension, which is no multiple of 16 bytes");
  box.shared = shared;
  cluster_at(shared, box.bytes(), 128, "cp.async.bulk.tensor");
  return box;
}

// Tell of what the copy touches in the tensor, when it is asked for.
void note_box(const Box& box, Access access) {
  long long first = std::max(box.at[0], 0);
  long long last = std::min<long long>(box.at[0] + box.map.box[0], static_cast<long long>(box.map.extents[0]));
  for (u32 row = 0; row < box.rows() && first < last; ++row) {
    long long address;
    if (!box.row_address(row, address)) continue;
    u32 size = box.map.element_bytes;
    note_global(static_cast<u64>(address + first * size), static_cast<u64>(last - first) * size, access);
  }
}

void load_box(const Box& box) {
  u32 size = box.map.element_bytes;
  for (u32 row = 0; row < box.rows(); ++row) {
    long long address;
    bool inside = box.row_address(row, address);
    for (u32 column = 0; column < box.map.box[0]; ++column) {
      u8* to = box.shared_element(row, column);
      long long from = address + (box.at[0] + static_cast<long long>(column)) * size;
      if (inside && box.column_inside(column))
        std::memcpy(to, reinterpret_cast<const u8*>(from), size);
      else
        std::memset(to, box.map.nan_outside ? 0xFF : 0, size);
    }
  }
}

template <class T, class Sum>
void add_as(u8* to, const u8* from, Sum sum) {
  T a, b;
  std::memcpy(&a, to, sizeof a);
  std::memcpy(&b, from, sizeof b);
  a = sum(a, b);
  std::memcpy(to, &a, sizeof a);
}

void add(u8* to, const u8* from, Element element) {
  if (element == Element::f32) return add_as<float>(to, from, std::plus<float>());
  if (element == Element::u32) return add_as<u32>(to, from, std::plus<u32>());
  if (element != Element::f16 && element != Element::bf16)
    fail("cp.reduce.async.bulk.tensor: no addition of 8-bit or plain 16-bit elements");
  Type type = element == Element::f16 ? Type::f16 : Type::bf16;
  add_as<u16>(to, from, [type](u16 a, u16 b) { return narrow(widen(a, type) + widen(b, type), type); });
}

void store_box(const Box& box, Reduce reduce) {
  u32 size = box.map.element_bytes;
  for (u32 row = 0; row < box.rows(); ++row) {
    long long address;
    if (!box.row_address(row, address)) continue;
    for (u32 column = 0; column < box.map.box[0]; ++column) {
      if (!box.column_inside(column)) continue;
      const u8* from = box.shared_element(row, column);
      u8* to = reinterpret_cast<u8*>(address + (box.at[0] + static_cast<long long>(column)) * size);
      if (reduce == Reduce::add)
        add(to, from, box.map.element);
      else
        std::memcpy(to, from, size);
    }
  }
}

}  // namespace

void tensor_load(u32 shared, const void* map, u32 mbarrier, const int* at, u32 rank, u32 ranks) {
  Box box = box_of(map, shared, at, rank);
  note_box(box, Access::read);
  auto land = [box](u32 to) {
    Box there = box;
    there.shared = to;
    load_box(there);
  };
  start_load(shared, box.bytes(), mbarrier, ranks, land, "cp.async.bulk.tensor load");
}

void tensor_store(const void* map, u32 shared, const int* at, u32 rank, Reduce reduce) {
  Box box = box_of(map, shared, at, rank);
  if (at[0] < 0)  // an H100 traps, as above; outer coordinates were not tried
    fail("cp.async.bulk.tensor: what is stored starts at element ", at[0],
         " of the innermost dimension, before the tensor");
  note_box(box, reduce == Reduce::add ? Access::update : Access::write);
  start_store(shared, box.bytes(), [box, reduce] { store_box(box, reduce); }, "cp.async.bulk.tensor store");
}

}  // namespace emulator
