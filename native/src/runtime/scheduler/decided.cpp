#include "decided.hpp"

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string_view>

#include "places/cpu_limit.hpp"

namespace atl::runtime {

namespace {

// Each worker remembers some 36 bytes of each other one (FarWatch, VictimOrder): 2.3 GiB in all.
constexpr int kMostWorkers = 8192;
constexpr int kMostCpus = 1 << 20;  // of the largest mask that is read (affinity.cpp)
constexpr std::size_t kMostTraceEvents = std::size_t{1} << 30;  // 16 GiB a worker

// A steal waits at most for a few of them.
bool is_latency(double ns) { return ns >= 0 && ns <= 1e9; }  // false for NaN

void check_latency(const char* name, double ns) {
  if (is_latency(ns)) return;
  std::ostringstream text;
  text << "latency." << name << " is " << ns << ": give nanoseconds, from 0 to 1e9";
  throw RuntimeFault(text.str());
}

void check(const RuntimeOptions& options) {
  if (options.latency) {
    check_latency("local_chiplet_ns", options.latency->local_chiplet_ns);
    check_latency("remote_chiplet_ns", options.latency->remote_chiplet_ns);
    check_latency("remote_node_ns", options.latency->remote_node_ns);
    check_latency("memory_ns", options.latency->memory_ns);
  }
  if (options.workers < 0) {
    throw RuntimeFault("workers is " + std::to_string(options.workers) +
                       ": give 1 or more, or 0 for one per core");
  }
  if (options.workers > kMostWorkers) {
    throw RuntimeFault("workers is " + std::to_string(options.workers) + ": give at most " +
                       std::to_string(kMostWorkers));
  }
  if (options.interval < std::chrono::milliseconds(1)) {
    throw RuntimeFault("interval is " + std::to_string(options.interval.count()) +
                       " ms: give 1 or more");
  }
  if (options.trace_events > kMostTraceEvents) {
    throw RuntimeFault("trace_events is " + std::to_string(options.trace_events) +
                       ": give at most " + std::to_string(kMostTraceEvents));
  }
}

// Tables are indexed by such numbers.
void check_number(const char* what, int number) {
  if (number >= 0 && number < kMostCpus) return;
  throw RuntimeFault(std::string("the places have a core on ") + what + " " +
                     std::to_string(number) + ": give 0 to " + std::to_string(kMostCpus - 1));
}

// They may be made by hand.
void check(const Places& places) {
  if (places.cores.empty()) throw RuntimeFault("the places have no core: nothing to sit on");
  const std::size_t rows = places.chiplet_levels.size();
  std::map<int, const Core*> first_of_chiplet;
  for (const Core& core : places.cores) {
    for (const int cpu : core.cpus) check_number("CPU", cpu);
    check_number("node", core.node);
    if (core.chiplet < 0 || static_cast<std::size_t>(core.chiplet) >= rows) {
      throw RuntimeFault("the places have a core on chiplet " + std::to_string(core.chiplet) +
                         ", but chiplet_levels has " + std::to_string(rows) +
                         " rows: give one for each chiplet");
    }
    const Core& first = *first_of_chiplet.emplace(core.chiplet, &core).first->second;
    if (core.node == first.node && core.package == first.package) continue;
    throw RuntimeFault("the places have cores of chiplet " + std::to_string(core.chiplet) +
                       " in several nodes or packages: give each part a chiplet of its own");
  }
  for (const std::vector<int>& row : places.chiplet_levels) {
    if (row.size() == rows) continue;
    throw RuntimeFault("a row of the places' chiplet_levels has " + std::to_string(row.size()) +
                       " levels: give " + std::to_string(rows) + ", one for each chiplet");
  }
}

// Empty: the variable is not set, or to nothing.
std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

[[noreturn]] void not_allowed(const char* name, std::string_view value,
                              const std::string& allowed) {
  throw RuntimeFault("the environment variable " + std::string(name) + " is '" +
                     std::string(value) + "': " + allowed);
}

void take_environment(RuntimeOptions& options) {
  if (const auto value = variable("ATOLL_WORKERS"); !value.empty() && options.workers == 0) {
    const char* const end = value.data() + value.size();
    const auto [at, error] = std::from_chars(value.data(), end, options.workers);
    if (error != std::errc() || at != end || options.workers < 1 ||
        options.workers > kMostWorkers) {
      not_allowed("ATOLL_WORKERS", value,
                  "give a number from 1 to " + std::to_string(kMostWorkers));
    }
  }
  if (const auto value = variable("ATOLL_PIN"); !value.empty() && !options.pin) {
    if (value != "0" && value != "1") {
      not_allowed("ATOLL_PIN", value, "give 1 to bind workers to their cores, or 0");
    }
    options.pin = value == "1";
  }
  const auto value = variable("ATOLL_APPROACH");
  if (value.empty() || !options.approach.empty() || options.own_approach) return;
  options.approach = value;
  try {
    static_cast<void>(approach_by_name(value, 0));
  } catch (const RuntimeFault& fault) {
    not_allowed("ATOLL_APPROACH", value, fault.what());
  }
}

// Means over the pairs of chiplets. O(chiplets^2) if there was a profile.
FillLatency latency_of(const Places& places) {
  FillLatency latency;
  if (places.level_ns.empty()) return latency;
  std::vector<int> nodes(places.chiplet_levels.size());
  for (const Core& core : places.cores) nodes[static_cast<std::size_t>(core.chiplet)] = core.node;
  struct Sum {
    double ns = 0;
    int pairs = 0;
  };
  Sum of_node;
  Sum elsewhere;
  for (std::size_t to = 0; to < nodes.size(); ++to) {
    for (std::size_t from = 0; from < to; ++from) {
      const auto level = static_cast<std::size_t>(places.chiplet_levels[from][to]);
      const double ns = level < places.level_ns.size() ? places.level_ns[level] : 0;
      if (ns == 0 || !is_latency(ns)) continue;  // a profile may have any number
      Sum& sum = nodes[from] == nodes[to] ? of_node : elsewhere;
      sum.ns += ns;
      ++sum.pairs;
    }
  }
  if (of_node.pairs > 0) latency.remote_chiplet_ns = of_node.ns / of_node.pairs;
  if (elsewhere.pairs > 0) latency.remote_node_ns = elsewhere.ns / elsewhere.pairs;
  return latency;
}

}  // namespace

Decided decided(const RuntimeOptions& options) {
  check(options);
  Decided made{options, {}};
  RuntimeOptions& all = made.options;
  take_environment(all);
  if (!all.pin) all.pin = true;
  if (all.approach.empty()) all.approach = kDefaultApproach;
  if (!all.places) all.places = places_here();
  check(*all.places);
  if (!all.latency) all.latency = latency_of(*all.places);
  const int cores = static_cast<int>(all.places->cores.size());
  if (all.places->made_up) {
    made.remarks.emplace_back("places: made up; memory lies on the machine's own nodes");
  }
  if (all.workers != 0) return made;
  all.workers = default_workers(*all.places);
  if (all.workers < cores) {
    std::ostringstream remark;
    remark << "workers: " << all.workers << " for " << cores
           << " cores, because the cgroup's CPU quota is " << cpu_limit().value_or(all.workers)
           << " CPUs (cpu.max, or the CFS quota of version 1)";
    made.remarks.push_back(remark.str());
  }
  return made;
}

}  // namespace atl::runtime
