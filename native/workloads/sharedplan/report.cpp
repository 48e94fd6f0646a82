#include "report.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "evaluate.hpp"

namespace atl::sharedplan {
namespace {

using Json = nlohmann::ordered_json;

double seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

template <class Number>
Number at_share(const std::vector<Number>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  return sorted.empty() ? 0 : sorted[static_cast<std::size_t>(at + 0.5)];
}

// Of each whole window of the stretch, the share that the operator was busy.
std::vector<double> busy(const Engine& engine, const Stretch& stretch, const Usage& used) {
  std::vector<double> shares;
  const auto end = (stretch.to - engine.began()) / kWindow;
  for (auto at = (stretch.from - engine.began()) / kWindow + 1; at < end; ++at) {
    const auto found = used.cpu_s_by_window.find(at);
    const bool none = found == used.cpu_s_by_window.end();
    shares.push_back(none ? 0 : found->second / seconds(kWindow));
  }
  return shares;
}

Json known(double value, const char* source, const char* how) {
  return {{"value", value}, {"source", source}, {"how", how}};
}

const char* kind_of(Kind kind) {
  constexpr const char* kKinds[] = {"scan", "filter", "other",     "other",
                                    "join", "join",   "aggregate", "sort"};
  return kKinds[static_cast<int>(kind)];
}

}  // namespace

Stretch watch(Engine& engine, Browsers& browsers, std::chrono::milliseconds time,
              const std::function<bool()>& stopped) {
  Stretch stretch;
  engine.watched = true;
  stretch.from = Clock::now();
  while (Clock::now() < stretch.from + time && !stopped()) {
    engine.check();
    const auto left = stretch.from + time - Clock::now();
    std::this_thread::sleep_for(std::clamp<Clock::duration>(left, Clock::duration(0), kWindow));
  }
  stretch.to = Clock::now();
  engine.watched = false;
  stretch.answers = browsers.take();
  for (const auto& station : engine.stations()) stretch.used.push_back(station->meter.take());
  for (const auto& query : stretch.answers.samples) verify(engine.tables(), *query);
  return stretch;
}

Json throughput(const Stretch& stretch, const Places& here) {
  std::vector<double> windows(static_cast<std::size_t>(seconds(stretch.to - stretch.from)));
  std::vector<float> latencies;
  for (const Answer& answer : stretch.answers.all) {
    const auto window = static_cast<std::size_t>(seconds(answer.at - stretch.from));
    if (answer.at >= stretch.from && window < windows.size()) windows[window] += 1;
    latencies.push_back(answer.seconds * 1e3F);
  }
  std::sort(latencies.begin(), latencies.end());

  std::map<int, double> by_core;
  double cpu_s = 0;
  for (const Usage& used : stretch.used) {
    for (const auto& [cpu, used_s] : used.cpu_s_by_cpu) {
      cpu_s += used_s;
      const Core* const core = core_of(here, cpu);
      by_core[core == nullptr ? cpu : core->cpus.front()] += used_s;
    }
  }
  std::vector<int> cores;
  for (const auto& [cpu, used] : by_core) {
    if (used > 0.01 * cpu_s) cores.push_back(cpu);
  }
  return {{"seconds", seconds(stretch.to - stretch.from)},
          {"interactions", stretch.answers.all.size()},
          {"cycles", stretch.answers.cycles},
          {"verified", stretch.answers.samples.size()},
          {"per_window", windows},
          {"p50_ms", at_share(latencies, 0.5)},
          {"p90_ms", at_share(latencies, 0.9)},
          {"p99_ms", at_share(latencies, 0.99)},
          {"operators_cpu_s", cpu_s},
          {"cores", cores}};
}

Json graph(const Engine& engine, const Stretch& stretch) {
  const double time_s = seconds(stretch.to - stretch.from);
  Json operators = Json::array(), edges = Json::array(), overlaps = Json::array();
  std::map<std::string, std::vector<double>> busy_of;
  std::map<std::string, double> given;  // bytes a second
  for (std::size_t at = 0; at < engine.stations().size(); ++at) {
    const Spec& spec = *engine.stations()[at]->spec;
    const Usage& used = stretch.used[at];
    const auto rate = [&](std::uint64_t bytes) { return static_cast<double>(bytes) / time_s; };
    double cpu_s = 0;
    for (const auto& [cpu, used_s] : used.cpu_s_by_cpu) cpu_s += used_s;
    std::vector<double> windows = busy(engine, stretch, used);
    busy_of[spec.id] = windows;
    given[spec.id] = rate(used.out_bytes);
    std::sort(windows.begin(), windows.end());
    const double moved_gbs = rate(used.table_bytes + used.in_bytes + used.out_bytes) / 1e9;
    operators.push_back(
        {{"id", spec.id},
         {"kind", kind_of(spec.kind)},
         {"blocking", spec.kind == Kind::kGroup || spec.kind == Kind::kTop},
         {"activity",
          {{"duty", known(cpu_s / time_s, "measured", "CPU time of its thread while it works")},
           {"peak", known(at_share(windows, 0.95), "measured", "windows of 100 ms")},
           {"memory_gbs", known(moved_gbs, "estimated",
                                "bytes of the rows that it reads and "
                                "writes; caches may hold them")},
           {"cache_bytes", used.own_bytes}}}});
    for (const std::string& giver : spec.inputs) {
      edges.push_back({{"giver", giver},
                       {"taker", spec.id},
                       {"bytes_per_s", known(given[giver], "measured", "rows and their queries")}});
      const std::vector<double>& one = busy_of[giver];
      const std::vector<double>& other = busy_of[spec.id];
      double both = 0;
      for (std::size_t window = 0; window < one.size(); ++window) {
        both += one[window] > 0.05 && other[window] > 0.05 ? 1 : 0;
      }
      if (!one.empty()) {
        overlaps.push_back({{"giver", giver},
                            {"taker", spec.id},
                            {"share", both / static_cast<double>(one.size())}});
      }
    }
  }
  return {{"format", "atoll/operators"},
          {"version", 1},
          {"engine", "sharedplan"},
          {"rate",
           {{"value", static_cast<double>(stretch.answers.all.size()) / time_s},
            {"unit", "interactions/s"}}},
          {"seconds", time_s},
          {"operators", operators},
          {"edges", edges},
          {"overlaps", overlaps},
          {"notes", {"without the CPU time in which threads and workers wait for rows"}}};
}

Json threads(const Engine& engine) {
  std::map<int, std::vector<std::string>> by_tid;
  for (const auto& station : engine.stations()) {
    while (station->tid == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    by_tid[station->tid].push_back(station->spec->id);
  }
  Json all = Json::array();
  for (const auto& [tid, operators] : by_tid) {
    all.push_back({{"operators", operators}, {"tid", tid}});
  }
  return all;
}

}  // namespace atl::sharedplan
