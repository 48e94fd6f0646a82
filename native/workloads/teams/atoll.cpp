// Atoll's runtime: parallel_for, all_do, and its own NodeMap.
#include "atoll/runtime/all_do.hpp"
#include "atoll/runtime/parallel.hpp"
#include "atoll/runtime/runtime.hpp"
#include "atoll/runtime/this_task.hpp"
#include "teams/teams.hpp"

namespace atl::kernels {
namespace {

RuntimeOptions runtime_options(int workers, const std::string& approach) {
  RuntimeOptions options;
  options.workers = workers;
  options.approach = approach;
  return options;
}

class AtollTeam final : public Team {
 public:
  AtollTeam(int workers, const std::string& approach)
      : runtime_(runtime_options(workers, approach)) {}

  int workers() const override { return runtime_.workers(); }
  NodeMap nodes() const override { return runtime_.node_map(); }
  std::vector<int> chiplets() const override {
    std::vector<int> of_rank;
    for (const int core : runtime_.cores()) {
      of_rank.push_back(runtime_.places().cores[static_cast<std::size_t>(core)].chiplet);
    }
    return of_rank;
  }
  void run(FunctionRef<void()> work) override {
    runtime_.run([&] { work(); });
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

 private:
  Runtime runtime_;
};

}  // namespace

std::unique_ptr<Team> atoll_team(const TeamOptions& options) {
  return std::make_unique<AtollTeam>(options.workers, options.approach);
}

std::unique_ptr<Team> printed_team(const TeamOptions& options) {
  return std::make_unique<AtollTeam>(options.workers, "arcas-2025-printed");
}

}  // namespace atl::kernels
