// Address space for one array: aligned to its kind of pages, zero, nothing touched yet, except that
// pages of a huge page pool are populated later by `populate`.
//
// Ordinary memory has pages in front of it and behind it that nobody may touch: what runs over the
// end faults, and the kernel merges the mapping with no neighbour's, so /proc/self/smaps tells of
// it alone.
#pragma once

#include <cstddef>

#include "atoll/runtime/placed_memory.hpp"
#include "page_policy.hpp"

namespace atl::runtime {

class Reservation {
 public:
  // Throws RuntimeFault if it is too large, or there is no memory or no huge page of this kind.
  Reservation(PagePolicy& policy, std::size_t bytes, Pages pages);
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;
  ~Reservation();

  [[nodiscard]] std::byte* data() const { return data_; }
  // As asked for, and rounded up to whole pages of the kind.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] std::size_t whole_bytes() const { return whole_bytes_; }
  // What lies on one node as a whole: the granularity of placing.
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
