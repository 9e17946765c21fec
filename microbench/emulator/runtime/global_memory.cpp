// Global memory: allocations that end at an inaccessible page, so that a kernel's plain pointers are checked too.
#include <sys/mman.h>

#include <cstring>
#include <map>

#include "emulator/runtime/block.hpp"
#include "emulator/runtime/global_memory.hpp"

namespace emulator {

namespace {

// Address space costs nothing: wide enough for an index that is wrong by a whole tensor.
constexpr std::size_t kPage = 4096, kGuard = std::size_t{1} << 30;

struct Allocation {
  u64 bytes;
  char* mapped;
  std::size_t mapped_bytes;
  GlobalCell* cells;  // of the race report; null until the first access
};
std::map<u64, Allocation> allocations;  // by address
Allocation* latest = nullptr;           // most accesses come to the buffer of the last one
u64 latest_start = 0;

std::size_t cells_bytes(const Allocation& allocation) { return (allocation.bytes / 4 + 1) * sizeof(GlobalCell); }

// The allocation whose guards or bytes hold `address`.
const std::pair<const u64, Allocation>* around(u64 address) {
  for (const auto& entry : allocations) {
    u64 first = reinterpret_cast<u64>(entry.second.mapped);
    if (address >= first && address < first + entry.second.mapped_bytes) return &entry;
  }
  return nullptr;
}

}  // namespace

std::string global_trouble(u64 address, u64 bytes) {
  const auto* near = around(address);
  if (!near) return "global address " + hex(address) + " belongs to no buffer";
  long long offset = static_cast<long long>(address - near->first);
  return joined("global access at byte ", offset, bytes ? joined(" of ", bytes, " bytes") : "", ", in a buffer of ",
                near->second.bytes, " bytes");
}

GlobalCell* global_cells(u64 address, u64& start) {
  if (!latest || address - latest_start >= latest->bytes) {
    auto after = allocations.upper_bound(address);
    if (after == allocations.begin() || address - (--after)->first >= after->second.bytes) return nullptr;
    latest = &after->second;
    latest_start = after->first;
  }
  start = latest_start;
  if (latest->cells) return latest->cells;
  void* mapped =
      mmap(nullptr, cells_bytes(*latest), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) throw Failure(joined("no memory to watch ", latest->bytes, " bytes for races"));
  return latest->cells = static_cast<GlobalCell*>(mapped);
}

void global_cells_reset() {
  for (auto& [start, allocation] : allocations) {
    if (allocation.cells) munmap(allocation.cells, cells_bytes(allocation));
    allocation.cells = nullptr;
  }
}

u8* global_at(u64 address, u32 bytes, u32 alignment, const char* what) {
  if (address % alignment) fail(what, ": global address ", hex(address), " is not a multiple of ", alignment);
  auto after = allocations.upper_bound(address);
  if (after != allocations.begin()) {
    const auto& [start, allocation] = *--after;
    if (address + bytes <= start + allocation.bytes) return reinterpret_cast<u8*>(address);
  }
  fail("out of bounds: ", what, ": ", global_trouble(address, bytes));
}

void load_global(u64 address, void* value, u32 bytes) {
  const u8* from = global_at(address, bytes, bytes, "ld.global");
  note_global(address, bytes, Access::read);
  std::memcpy(value, from, bytes);
}

void store_global(u64 address, const void* value, u32 bytes) {
  u8* to = global_at(address, bytes, bytes, "st.global");
  note_global(address, bytes, Access::write);
  std::memcpy(to, value, bytes);
}

}  // namespace emulator

// A buffer of `bytes`, filled with 0xFF, that ends at a guard page (at most 255 bytes before it: it is aligned to 256,
// as cudaMalloc does, wherever its size allows). Null where there is no memory.
extern "C" void* smscope_allocate(unsigned long long bytes) {
  using namespace emulator;
  std::size_t body = (bytes + kPage - 1) / kPage * kPage, total = body + 2 * kGuard;
  void* mapped = mmap(nullptr, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  char* start = static_cast<char*>(mapped) + kGuard;
  if (body && mprotect(start, body, PROT_READ | PROT_WRITE)) return nullptr;
  std::memset(start, 0xFF, body);
  char* buffer = start + (body - bytes) / 256 * 256;
  allocations[reinterpret_cast<u64>(buffer)] = {bytes, static_cast<char*>(mapped), total, nullptr};
  return buffer;
}

// Memory of somebody else as a buffer, until it is freed here; nothing guards its ends.
extern "C" void smscope_adopt(void* memory, unsigned long long bytes) {
  emulator::allocations[reinterpret_cast<emulator::u64>(memory)] = {bytes, static_cast<char*>(memory), 0, nullptr};
}

extern "C" void smscope_free(void* buffer) {
  using namespace emulator;
  auto found = allocations.find(reinterpret_cast<u64>(buffer));
  if (found == allocations.end()) return;
  if (found->second.mapped_bytes) munmap(found->second.mapped, found->second.mapped_bytes);
  if (found->second.cells) munmap(found->second.cells, cells_bytes(found->second));
  latest = nullptr;
  allocations.erase(found);
}
