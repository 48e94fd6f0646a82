// oneTBB: an arena of the workers, its parallel_for with the automatic partitioner.
#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include "teams/teams.hpp"

namespace atl::kernels {
namespace {

class TbbTeam final : public UnplacedTeam {
 public:
  explicit TbbTeam(int workers)
      : UnplacedTeam(workers),
        threads_(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(workers)),
        arena_(workers) {}

  void run(FunctionRef<void()> work) override {
    arena_.execute([&] { work(); });
  }
  void loop(std::size_t items, std::size_t grain,
            FunctionRef<void(std::size_t, std::size_t)> piece) override {
    using Range = tbb::blocked_range<std::size_t>;
    tbb::parallel_for(Range(0, items, default_grain(items, grain, workers())),
                      [&](const Range& range) { piece(range.begin(), range.end()); });
  }
  void each(FunctionRef<void(int)> work) override {
    tbb::parallel_for(0, workers(), [&](int rank) { work(rank); }, tbb::simple_partitioner());
  }
  int rank() const override { return tbb::this_task_arena::current_thread_index(); }

 private:
  tbb::global_control threads_;
  tbb::task_arena arena_;
};

}  // namespace

std::unique_ptr<Team> tbb_team(const TeamOptions& options) {
  return std::make_unique<TbbTeam>(options.workers);
}

}  // namespace atl::kernels
