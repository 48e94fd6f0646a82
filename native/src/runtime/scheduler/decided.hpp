// What a runtime's options leave open is decided here: by the environment (ATOLL_WORKERS,
// ATOLL_APPROACH, ATOLL_PIN), then by the machine.
#pragma once

#include <string>
#include <vector>

#include "atoll/runtime/options.hpp"

namespace atl::runtime {

struct Decided {
  RuntimeOptions options;  // has workers, places, pin, an approach and latencies
  // Why the workers are as they are, where that is not what one expects: for the profile.
  std::vector<std::string> remarks;
  std::string mountinfo = "/proc/self/mountinfo";  // where resctrl is looked for
  std::string devices = "/sys/bus/pci/devices";    // and simulated caches
};

// Throws RuntimeFault for an impossible option, or a variable whose value is not allowed.
Decided decided(const RuntimeOptions& options);

}  // namespace atl::runtime
