// GCC's OpenMP: `omp for` with dynamic pieces.
#include <omp.h>

#include <algorithm>
#include <exception>

#include "teams/teams.hpp"

namespace atl::kernels {
namespace {

// An exception must not leave a parallel region: the first one waits here.
class FirstFault {
 public:
  template <class F>
  void guard(F&& work) {
    try {
      work();
    } catch (...) {
#pragma omp critical(atoll_first_fault)
      if (!fault_) fault_ = std::current_exception();
    }
  }
  void rethrow() const {
    if (fault_) std::rethrow_exception(fault_);
  }

 private:
  std::exception_ptr fault_;
};

class OpenMpTeam final : public UnplacedTeam {
 public:
  explicit OpenMpTeam(int workers) : UnplacedTeam(workers) {}

  void loop(std::size_t items, std::size_t grain,
            FunctionRef<void(std::size_t, std::size_t)> piece) override {
    const std::size_t step = default_grain(items, grain, workers());
    const std::size_t pieces = (items + step - 1) / step;
    FirstFault fault;
#pragma omp parallel for num_threads(workers()) schedule(dynamic, 1)
    for (std::size_t at = 0; at < pieces; ++at) {
      fault.guard([&] { piece(at * step, std::min(at * step + step, items)); });
    }
    fault.rethrow();
  }
  void each(FunctionRef<void(int)> work) override {
    FirstFault fault;
    // A loop, as OMP_THREAD_LIMIT may leave fewer threads than ranks.
#pragma omp parallel for num_threads(workers()) schedule(static, 1)
    for (int rank = 0; rank < workers(); ++rank) {
      fault.guard([&] { work(rank); });
    }
    fault.rethrow();
  }
  int rank() const override { return omp_get_thread_num(); }
};

}  // namespace

std::unique_ptr<Team> openmp_team(const TeamOptions& options) {
  omp_set_dynamic(0);  // else it may start fewer threads
  return std::make_unique<OpenMpTeam>(options.workers);
}

}  // namespace atl::kernels
