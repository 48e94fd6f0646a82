// Address space for one array: aligned to its kind of pages, zeroed, untouched, except that
// `populate` later fills pages of a huge page pool.
//
// Ordinary memory has inaccessible pages before and after it: an overrun faults, and the kernel
// does not merge the mapping with a neighbour, so that /proc/self/smaps reports it separately.
#pragma once

#include <cstddef>

#include "atoll/runtime/placed_memory.hpp"
#include "page_policy.hpp"

namespace atl::runtime {

class Reservation {
 public:
  // Throws RuntimeFault if it is too large or memory or huge pages of this kind run out.
  Reservation(PagePolicy& policy, std::size_t bytes, Pages pages);
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;
  ~Reservation();

  [[nodiscard]] std::byte* data() const { return data_; }
  // The requested size, and the size rounded up to whole pages of the kind.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] std::size_t whole_bytes() const { return whole_bytes_; }
  // The granularity of placing: each unit is on one node.
  [[nodiscard]] std::size_t unit_bytes() const { return unit_bytes_; }
  [[nodiscard]] bool of_pool() const { return of_pool_; }

 private:
  void reserve(PagePolicy& policy, Pages pages);

  std::byte* mapping_ = nullptr;
  std::size_t mapping_bytes_ = 0;
  std::byte* data_ = nullptr;
  std::size_t bytes_;
  std::size_t whole_bytes_ = 0;
  std::size_t unit_bytes_ = 0;
  bool of_pool_ = false;
};

}  // namespace atl::runtime
