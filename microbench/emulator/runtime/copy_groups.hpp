// Copies that one thread closes into groups and waits for by count: cp.async and bulk stores.
#pragma once
#include <deque>

#include "emulator/runtime/block.hpp"

namespace emulator {

struct Copy {
  Async work;
  u32 shared, bytes;
};

class CopyGroups {
 public:
  void add(Copy copy) { open_.push_back(std::move(copy)); }

  void commit() {
    committed_.push_back(std::move(open_));
    open_.clear();
  }

  bool all_waited_for() const { return open_.empty() && committed_.empty(); }

  // Finish the oldest groups until `pending` are left; `settle` learns of each copy.
  template <class Function>
  void wait(u32 pending, Function settle) {
    for (; committed_.size() > pending; committed_.pop_front())
      for (Copy& copy : committed_.front()) {
        copy.work->finish();
        settle(copy);
      }
  }

 private:
  std::vector<Copy> open_;
  std::deque<std::vector<Copy>> committed_;
};

}  // namespace emulator
