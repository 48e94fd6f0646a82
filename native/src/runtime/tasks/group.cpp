#include "atoll/runtime/group.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "atoll/runtime/this_task.hpp"
#include "scheduler/worker.hpp"

namespace atl {

struct Group::State {
  runtime::Team& team;
  std::size_t domain;
  std::shared_ptr<runtime::Steered> steered;
  std::vector<int> members;  // under the governor's lock
};

Group::Group(Runtime& runtime, const GroupOptions& options) : runtime_(runtime) {
  runtime::Team& team = runtime.team();
  const int threads = options.threads == 0 ? team.size() : options.threads;
  if (threads < 1 || threads > team.size()) {
    throw RuntimeFault("a group of " + std::to_string(options.threads) + " threads: give 1 to " +
                       std::to_string(team.size()) +
                       ", the runtime's workers, or 0 for all of them");
  }
  auto steered = std::make_shared<runtime::Steered>();
  steered->approach = options.own_approach ? options.own_approach
                                           : approach_by_name(options.approach, team.next_seed());
  steered->threads = threads;
  steered->working_set_bytes = options.working_set_bytes;
  state_ = std::make_unique<State>(State{team, team.domains.add(), steered, {}});
  State* const state = state_.get();
  steered->tag = detail::Word{state->domain} << detail::kDomainShift;
  steered->workers = [state] { return state->members; };
  steered->seat = [state, threads](runtime::Steered& self, int spread) {
    const std::vector<int> cores = state->team.seats.cores();
    const runtime::SpreadBounds bounds =
        runtime::member_bounds(state->team.seats.places, cores, threads);
    self.min_spread = bounds.least;
    self.max_spread = bounds.most;
    self.spread = bounds.clamp(spread);
    std::vector<int> now;
    for (const int rank : state->members) now.push_back(cores[static_cast<std::size_t>(rank)]);
    std::vector<int> wanted;
    if (!now.empty()) {
      wanted = runtime::mapped(state->team.seats.places, cores, now, self.spread, *self.approach);
    }
    if (wanted.empty()) {
      wanted = runtime::member_cores(state->team.seats.places, cores, threads, self.spread);
    }
    state->members = runtime::members_on(wanted, cores);
    state->team.domains.set_members(state->domain, state->members);
    // Tasks may wait for a sleeping worker that has just become a member.
    state->team.parking.notify_all();
  };
  team.governor().add(std::move(steered));
}

Group::~Group() {
  const runtime::Domain& domain = state_->team.domains[state_->domain];
  while (!domain.all_ended()) {
    if (this_task::inside()) {
      yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  state_->team.governor().remove(state_->steered.get());
  state_->team.domains.drop(state_->domain);
}

Place Group::place() const { return state_->team.place_domains.place_of_group(state_->domain); }

std::vector<int> Group::workers() const {
  return state_->team.governor().locked([&] { return state_->members; });
}

int Group::spread() const {
  return state_->team.governor().locked([&] { return state_->steered->spread; });
}

std::string Group::reason() const {
  return state_->team.governor().locked([&] { return state_->steered->reason; });
}

void Group::set_spread(int spread) { state_->team.governor().set_spread(*state_->steered, spread); }

}  // namespace atl
