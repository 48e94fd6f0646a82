// The command line of atoll-kernels.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "team.hpp"
#include "workload.hpp"

namespace atl::kernels {

struct Options {
  const Workload* workload = nullptr;
  Settings settings{{}};
  TeamOptions team;
  ArrayKind arrays = ArrayKind::kPartitioned;
  Pages pages = Pages::transparent;
  int runs = 3;
  std::uint64_t seed = 1;
  bool concurrency = false;
  enum class Print { kResult, kHelp, kVersion, kDescription } print = Print::kResult;
};

// `cpus`: the number of workers without --workers. Throws UsageFault.
[[nodiscard]] Options parse_options(int argc, char** argv, int cpus);

[[nodiscard]] std::string help();

// All workloads with their parameters, as one JSON object, for programs that start this one.
[[nodiscard]] std::string description();

[[nodiscard]] const char* name_of(ArrayKind kind);
[[nodiscard]] const char* name_of(Pages pages);

}  // namespace atl::kernels
