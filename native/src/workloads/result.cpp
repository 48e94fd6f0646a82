#include "result.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "need.hpp"

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
      {"index", nullptr},
      {"dataset", std::string(name_of(options.data.dataset))},
      {"records", options.data.records},
      {"groups", options.data.groups},
      {"key_step", options.key_step},
      {"seed", options.data.seed},
      {"threads", options.threads},
      {"pin", options.pin},
      {"keep", options.keep},
      {"generate_s", result.generate_s},
      {"build_s", nullptr},
      {"runs_s", result.runs_s},
      {"records_per_s", static_cast<double>(options.data.records) / median(result.runs_s)},
      {"input_bytes", result.input_bytes},
      {"peak_bytes", result.peak_bytes},
      {"overhead", nullptr},
      {"migrations", nullptr},
      {"local_share_estimated", nullptr},
      {"checked", options.check},
      {"answer", {{"rows", result.rows}, {"sums", result.sums}}},
  };
  if (options.workload == Workload::kIndexJoin) made["index"] = name_of(options.index);
  if (result.build_s) made["build_s"] = *result.build_s;
  if (const std::uint64_t held = held_bytes(options); held != 0) {
    const std::uint64_t beside =
        result.peak_bytes - std::min(result.input_bytes, result.peak_bytes);
    made["overhead"] = static_cast<double>(beside) / static_cast<double>(held);
  }
  if (result.local_share) made["local_share_estimated"] = *result.local_share;
  if (result.migrations) made["migrations"] = *result.migrations;
  return made.dump();
}

}  // namespace atl::workloads
