#include "atoll/runtime/group.hpp"

#include <utility>

#include "scheduler/worker.hpp"

namespace atl {

// Its domain exists as long as it does.
struct Group::State final : runtime::Steered {
  State(runtime::Team& of, std::shared_ptr<Approach> by, int at_most)
      : Steered(std::move(by)), team(of), domain(of.domains.add()) {
    tag = detail::Word{domain} << detail::kDomainShift;
    threads = at_most;
  }
  ~State() override { team.domains.drop(domain); }

  runtime::SpreadBounds limits() override {
    team.group_seats.follow(team.placement());
    return team.group_seats.limits(threads);
  }
  std::span<const int> workers() const override {
    return members == nullptr ? std::span<const int>() : std::span<const int>(*members);
  }
  void seat(int to) override {
    const bool is_new = members == nullptr;
    runtime::Ranks ranks = team.group_seats.members(threads, to, workers(), *approach);
    team.domains.set_members(domain, *ranks);
    members = std::move(ranks);
    // Tasks may wait for a sleeping worker that has just become a member.
    if (!is_new) team.parking.notify_all();
  }

  runtime::Team& team;
  const std::size_t domain;
  runtime::Ranks members;  // null: not yet seated
};

Group::Group(Runtime& runtime, const GroupOptions& options) : runtime_(runtime) {
  runtime::Team& team = runtime.team();
  const int threads = options.threads == 0 ? team.size() : options.threads;
  if (threads < 1 || threads > team.size()) {
    throw RuntimeFault("a group of " + std::to_string(options.threads) + " threads: give 1 to " +
                       std::to_string(team.size()) +
                       ", the runtime's workers, or 0 for all of them");
  }
  state_ = std::make_unique<State>(team,
                                   options.own_approach
                                       ? options.own_approach
                                       : approach_by_name(options.approach, team.next_seed()),
                                   threads);
  state_->give_working_set(options.working_set_bytes);
  team.governor().add(*state_);
}

Group::~Group() {
  state_->team.domains[state_->domain].await_all_ended();
  state_->team.governor().remove(*state_);
}

Place Group::place() const { return state_->team.place_domains.place_of_group(state_->domain); }

std::vector<int> Group::workers() const {
  return state_->team.governor().locked([&] { return *state_->members; });
}

int Group::spread() const {
  return state_->team.governor().locked([&] { return state_->spread; });
}

std::string Group::reason() const {
  return state_->team.governor().locked([&] { return state_->reason; });
}

void Group::set_spread(int spread) { state_->team.governor().set_spread(*state_, spread); }

}  // namespace atl
