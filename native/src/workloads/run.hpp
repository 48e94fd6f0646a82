// Makes the data, runs a workload on a team, and checks its answer.
#pragma once

#include <stdexcept>

#include "options.hpp"
#include "result.hpp"

namespace atl::workloads {

// The answer was wrong; its times mean nothing.
class WrongAnswer : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws UsageFault if the memory is not enough, WrongAnswer, RuntimeFault, std::bad_alloc, or
// std::system_error (threads that cannot be started, files that cannot be written).
[[nodiscard]] Result run(const Options& options);

}  // namespace atl::workloads
