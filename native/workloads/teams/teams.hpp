// The schedulers behind team.hpp, and what they have in common.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "atoll/runtime/places.hpp"
#include "team.hpp"

namespace atl::kernels {

std::unique_ptr<Team> atoll_team(const TeamOptions& options);
std::unique_ptr<Team> printed_team(const TeamOptions& options);
std::unique_ptr<Team> os_team(const TeamOptions& options);
std::unique_ptr<Team> async_team(const TeamOptions& options);
std::unique_ptr<Team> openmp_team(const TeamOptions& options);
std::unique_ptr<Team> tbb_team(const TeamOptions& options);

// An even share of the ranks for each node, neighbours together.
[[nodiscard]] NodeMap spread_over_nodes(int workers, const std::vector<int>& nodes);

// A team whose workers nobody places: they may be anywhere. The machine is read before the team has
// threads, because a child process reads it, and an allocator with locks of its own (that of
// AddressSanitizer) does not survive a fork while another thread holds one.
class UnplacedTeam : public Team {
 public:
  explicit UnplacedTeam(int workers);
  int workers() const override { return workers_; }
  NodeMap nodes() const override { return nodes_; }
  std::vector<int> chiplets() const override { return chiplets_; }
  void run(FunctionRef<void()> work) override { work(); }

 private:
  const int workers_;
  const NodeMap nodes_;
  const std::vector<int> chiplets_;
};

// `grain`, or for 0 what makes 32 pieces for each worker.
[[nodiscard]] std::size_t default_grain(std::size_t items, std::size_t grain, int workers);

}  // namespace atl::kernels
