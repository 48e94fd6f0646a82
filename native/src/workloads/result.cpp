#include "result.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace atl::workloads {
namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

std::string as_json(const Options& options, const Result& result) {
  nlohmann::ordered_json made = {
      {"format", "atoll/workload"},
      {"version", 1},
      {"workload", name_of(options.workload)},
      {"scheduler", name_of(options.scheduler)},
      {"variant", name_of(options.variant)},
      {"dataset", std::string(name_of(options.data.dataset))},
      {"records", options.data.records},
      {"groups", options.data.groups},
      {"seed", options.data.seed},
      {"threads", options.threads},
      {"keep", options.keep},
      {"generate_s", result.generate_s},
      {"runs_s", result.runs_s},
      {"records_per_s", static_cast<double>(options.data.records) / median(result.runs_s)},
      {"input_bytes", result.input_bytes},
      {"peak_bytes", result.peak_bytes},
      {"migrations", nullptr},
      {"checked", options.check},
      {"answer", {{"rows", result.rows}, {"sums", result.sums}}},
  };
  if (result.migrations) made["migrations"] = *result.migrations;
  return made.dump();
}

}  // namespace atl::workloads
