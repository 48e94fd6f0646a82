// What a measured stretch gave, and the plan as an operator graph with what each operator used.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>

#include "browsers.hpp"

namespace atl::sharedplan {

struct Stretch {
  Clock::time_point from, to;
  Answers answers;
  std::vector<Usage> used;  // by operator
};

// Watches for this time, or until `stopped`. Verifies the samples. Throws WrongAnswer, and what an
// operator has thrown.
[[nodiscard]] Stretch watch(Engine& engine, Browsers& browsers, std::chrono::milliseconds time,
                            const std::function<bool()>& stopped);

// Interactions a second, latencies, the cores that operators used.
[[nodiscard]] nlohmann::ordered_json throughput(const Stretch& stretch, const Places& here);

// Format atoll/operators 1 (src/atoll/schema/operator_graph.py).
[[nodiscard]] nlohmann::ordered_json graph(const Engine& engine, const Stretch& stretch);

// Which operators each thread runs: [{"operators": [...], "tid": 17}, ...].
[[nodiscard]] nlohmann::ordered_json threads(const Engine& engine);

}  // namespace atl::sharedplan
