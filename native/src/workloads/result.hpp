// What atoll-workload prints: one JSON object (format atoll/workload, docs/formats).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "options.hpp"

namespace atl::workloads {

struct Result {
  double generate_s = 0;
  std::optional<double> build_s;  // w4: of the index
  std::vector<double> runs_s;
  std::uint64_t input_bytes = 0;
  std::uint64_t peak_bytes = 0;             // of the process, until the last run ended
  std::optional<std::uint64_t> migrations;  // of the threads between CPUs, in all runs
  std::optional<double> local_share;        // of the pages; nullopt: one memory node
  std::uint64_t rows = 0;                   // of the answer
  std::vector<std::uint64_t> sums;          // of its columns
};

// One line.
[[nodiscard]] std::string as_json(const Options& options, const Result& result);

}  // namespace atl::workloads
