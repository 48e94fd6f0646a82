// Threads of the standard library that nobody binds: one for each worker, which take pieces from a
// counter.
#include "teams/teams.hpp"
#include "workloads/plain_team.hpp"

namespace atl::kernels {
namespace {

class OsTeam final : public UnplacedTeam {
 public:
  explicit OsTeam(int workers) : UnplacedTeam(workers), threads_(workers) {}

  void loop(std::size_t items, std::size_t grain,
            FunctionRef<void(std::size_t, std::size_t)> piece) override {
    threads_.pieces(items, default_grain(items, grain, workers()), piece);
  }
  void each(FunctionRef<void(int)> work) override {
    threads_.each([&](std::size_t rank) { work(static_cast<int>(rank)); });
  }
  int rank() const override { return static_cast<int>(workloads::PlainTeam::rank()); }

 private:
  workloads::PlainTeam threads_;
};

}  // namespace

std::unique_ptr<Team> os_team(const TeamOptions& options) {
  return std::make_unique<OsTeam>(options.workers);
}

}  // namespace atl::kernels
