// A walk through a prepared working set, timed in samples; shared by `chase` and `load`.
#pragma once

#include <cstddef>
#include <cstdint>

#include "chase_kernels.hpp"
#include "fault.hpp"

namespace atl::probe {

class Walker {
 public:
  // Throws Fault (argument) for a set of fewer than two lines.
  explicit Walker(std::size_t bytes, bool null_run);

  [[nodiscard]] std::size_t bytes() const { return order_.lines() * kChaseLineBytes; }

  // Runs on the CPU that will walk: writes the lines, warms the caches and finds the number of
  // loads in a sample.
  void prepare(std::byte* data);
  // Takes one sample: ns per load.
  [[nodiscard]] double sample();
  // Throws Fault (kernel) if the walk has left the lines.
  void verify() const;

 private:
  ChaseOrder order_;
  bool null_run_;
  std::byte* data_ = nullptr;
  void** at_ = nullptr;
  std::size_t blocks_ = 1;
};

}  // namespace atl::probe
