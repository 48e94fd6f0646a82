// What an operator gives to the next in a cycle: rows, each with the queries that want it.
#pragma once

#include <memory>
#include <memory_resource>
#include <mutex>
#include <vector>

#include "queries.hpp"

namespace atl::sharedplan {

struct Batch {
  Batch(std::size_t width, std::pmr::memory_resource* memory)
      : width(width), values(memory), sets(memory) {}

  [[nodiscard]] std::size_t size() const { return sets.size(); }
  [[nodiscard]] const std::uint32_t* row(std::size_t at) const { return &values[at * width]; }
  [[nodiscard]] std::size_t bytes() const {
    return values.size() * sizeof(std::uint32_t) + sets.size() * sizeof(QuerySet);
  }
  // Returns the new row's values, all 0.
  std::uint32_t* append(const QuerySet& set) {
    sets.push_back(set);
    values.resize(values.size() + width);
    return &values[values.size() - width];
  }

  std::size_t width;
  std::pmr::vector<std::uint32_t> values;
  std::pmr::vector<QuerySet> sets;
  std::shared_ptr<const Cycle> cycle;
};

using BatchPointer = std::shared_ptr<const Batch>;

// An operator's batches. A batch comes back when its last taker drops it, and keeps its memory,
// so cycles do not ask the system for any. It must outlive its batches.
class BatchPool {
 public:
  BatchPool(std::size_t width, std::pmr::memory_resource* memory)
      : width_(width), memory_(memory) {}

  // An empty batch.
  std::shared_ptr<Batch> take() {
    std::unique_ptr<Batch> batch;
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        batch = std::move(free_.back());
        free_.pop_back();
      }
    }
    if (!batch) batch = std::make_unique<Batch>(width_, memory_);
    return {batch.release(), [this](Batch* used) {
              used->values.clear();
              used->sets.clear();
              used->cycle.reset();
              const std::lock_guard lock(mutex_);
              free_.emplace_back(used);
            }};
  }

 private:
  std::size_t width_;
  std::pmr::memory_resource* memory_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Batch>> free_;
};

}  // namespace atl::sharedplan
