// The CPU model from /proc/cpuinfo, and the events that count its fills. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "events/fill_table.hpp"

namespace atl::runtime {

struct CpuModel {
  std::string vendor;  // "AuthenticAMD", "GenuineIntel"
  int family = 0;
  int model = 0;
  int stepping = 0;
  bool operator==(const CpuModel&) const = default;
};

// The first CPU in the text; empty for texts without an x86 CPU (Arm).
[[nodiscard]] std::optional<CpuModel> cpu_model(std::string_view cpuinfo);

// Null if no encodings are known for it.
[[nodiscard]] const FillTable* fill_table(const CpuModel& cpu);

}  // namespace atl::runtime
