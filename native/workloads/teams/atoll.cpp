// Atoll's runtime: parallel_for, all_do, and its own NodeMap.
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "atoll/runtime/all_do.hpp"
#include "atoll/runtime/controller.hpp"
#include "atoll/runtime/parallel.hpp"
#include "atoll/runtime/runtime.hpp"
#include "atoll/runtime/this_task.hpp"
#include "teams/teams.hpp"
#include "workload.hpp"

namespace atl::kernels {
namespace {

RuntimeOptions runtime_options(const TeamOptions& team, const std::string& approach) {
  RuntimeOptions options;
  options.workers = team.workers;
  options.approach = approach;
  options.interval = team.interval;
  return options;
}

class AtollTeam final : public Team {
 public:
  AtollTeam(const TeamOptions& team, const std::string& approach)
      : runtime_(runtime_options(team, approach)) {}

  int workers() const override { return runtime_.workers(); }
  NodeMap nodes() const override { return runtime_.node_map(); }
  std::vector<int> chiplets() const override {
    std::vector<int> of_rank;
    for (const int core : runtime_.cores()) {
      of_rank.push_back(runtime_.places().cores[static_cast<std::size_t>(core)].chiplet);
    }
    return of_rank;
  }
  // By a worker: what the caller did inside of Runtime::run would be neither bound nor counted.
  void run(FunctionRef<void()> work) override {
    runtime_.spawn([&] { work(); }).join();
  }
  void loop(std::size_t items, std::size_t grain,
            FunctionRef<void(std::size_t, std::size_t)> piece) override {
    atl::parallel_for(
        std::size_t{0}, items, [piece](std::size_t first, std::size_t last) { piece(first, last); },
        grain);
  }
  void each(FunctionRef<void(int)> work) override {
    atl::all_do([&](int rank) { work(rank); });
  }
  int rank() const override { return this_task::worker(); }
  Lines lines() const override {
    const Profile profile = runtime_.profile();
    Lines lines{.counted_by = profile.fills_source};
    for (const WorkerProfile& worker : profile.workers) {
      for (std::size_t source = 0; source < kFillSources; ++source) {
        const auto& counted = worker.fills.by_source[source];
        if (counted) lines.from[source] = lines.from[source].value_or(0) + *counted;
      }
    }
    // Not Runtime::spread, to which algorithm 2 as printed does not keep.
    const std::vector<int> places = chiplets();
    lines.chiplets = static_cast<int>(std::set<int>(places.begin(), places.end()).size());
    return lines;
  }

 private:
  Runtime runtime_;
};

}  // namespace

std::unique_ptr<Team> atoll_team(const TeamOptions& options) {
  if (!options.approach.empty()) {
    try {
      (void)approach_by_name(options.approach);
    } catch (const RuntimeFault& fault) {
      throw UsageFault("--approach: " + std::string(fault.what()));
    }
    constexpr std::string_view kStatic = "static:";
    if (options.approach.starts_with(kStatic)) {
      const std::string spread = options.approach.substr(kStatic.size());
      const int chiplets = places_here().chiplets();
      if (std::stoi(spread) > chiplets) {
        throw UsageFault("--spread " + spread + ": this machine has " + std::to_string(chiplets) +
                         (chiplets == 1 ? " chiplet" : " chiplets") + " whose CPUs may be used");
      }
    }
  }
  return std::make_unique<AtollTeam>(options, options.approach);
}

std::unique_ptr<Team> printed_team(const TeamOptions& options) {
  return std::make_unique<AtollTeam>(options, "arcas-2025-printed");
}

}  // namespace atl::kernels
