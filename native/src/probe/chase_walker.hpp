// A walk through a prepared working set, timed in samples; what `chase` and `load` share.
#pragma once

#include <cstddef>
#include <cstdint>

#include "chase_kernels.hpp"
#include "fault.hpp"

namespace atl::probe {

class Walker {
 public:
  // Fault (argument) for a set of less than two lines.
  explicit Walker(std::size_t bytes, bool null_run);

  [[nodiscard]] std::size_t bytes() const { return order_.lines() * kChaseLineBytes; }

  // On the CPU that is to walk: writes the lines, warms the caches, finds how many loads a sample
  // takes.
  void prepare(std::byte* data);
  // One sample: ns a load.
  [[nodiscard]] double sample();
  // Fault (kernel) if the walk has left the lines.
  void verify() const;

 private:
  ChaseOrder order_;
  bool null_run_;
  std::byte* data_ = nullptr;
  void** at_ = nullptr;
  std::size_t blocks_ = 1;
};

}  // namespace atl::probe
