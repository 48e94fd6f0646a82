#include "atoll/runtime/group.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "scheduler/process.hpp"
#include "scheduler/worker.hpp"

namespace atl {

namespace {

void check(const GroupOptions& options, const runtime::Team& team) {
  const auto fault = [](const std::string& what) { throw RuntimeFault("a group " + what); };
  const int chiplets = team.seats.places.chiplets();
  if (options.threads < 0 || options.threads > team.size()) {
    fault("of " + std::to_string(options.threads) + " threads: give 1 to " +
          std::to_string(team.size()) + ", the runtime's workers, or 0 for all of them");
  }
  for (const auto& [name, value] :
       {std::pair("spread", options.spread), std::pair("min_chiplets", options.min_chiplets),
        std::pair("max_chiplets", options.max_chiplets)}) {
    if (value < 0 || value > chiplets) {
      fault("whose " + std::string(name) + " is " + std::to_string(value) + ": give 1 to " +
            std::to_string(chiplets) + ", the chiplets of the places, or 0 for no wish");
    }
  }
  const int least = std::max(1, options.min_chiplets);
  const int most = options.max_chiplets == 0 ? chiplets : options.max_chiplets;
  if (least > most) {
    fault("of at least " + std::to_string(least) + " and at most " + std::to_string(most) +
          " chiplets: give min_chiplets that is not above max_chiplets");
  }
  if (options.spread != 0 && (options.spread < least || options.spread > most)) {
    fault("with a spread of " + std::to_string(options.spread) + " to begin with: its limits are " +
          std::to_string(least) + " to " + std::to_string(most) + " chiplets");
  }
  if (options.remember_as.empty()) return;
  if (options.own_approach) {
    fault(
        "with remember_as and an approach of its own, which the runtime cannot copy: give the "
        "same object to the next group, or take 'adaptive' or 'switchback'");
  }
  if (options.approach != "adaptive" && options.approach != "switchback") {
    fault("with remember_as and the approach '" + options.approach +
          "', which finds out nothing that a later group could use: take 'adaptive' or "
          "'switchback'");
  }
}

// Goes on with what the runtime remembers under a name.
class Remembered final : public Approach {
 public:
  Remembered(runtime::SpreadTable& table, std::string key, int first)
      : table_(table), key_(std::move(key)), first_(first) {}
  std::string name() const override { return key_.substr(0, key_.find(' ')); }
  bool needs_intervals() const override { return true; }
  int begin(const Sample& sample) const override {
    return table_.begin(key_, runtime::bounds_of(sample), first_).spread;
  }
  void ended(int spread, const runtime::Run& run, const runtime::RunBounds& bounds) {
    table_.end(key_, spread, run, bounds);
  }

 protected:
  Decision decide(const Sample& sample) override { return table_.during(key_, sample); }

 private:
  runtime::SpreadTable& table_;  // with the governor's lock held
  const std::string key_;        // the approach, a blank, and the name
  const int first_;
};

std::shared_ptr<Approach> approach_of(const GroupOptions& options, runtime::Team& team) {
  if (options.own_approach) return options.own_approach;
  if (options.remember_as.empty()) return approach_by_name(options.approach, team.next_seed());
  return std::make_shared<Remembered>(team.remembered, options.approach + ' ' + options.remember_as,
                                      options.spread);
}

}  // namespace

// Its domain exists as long as it does.
struct Group::State final : runtime::Steered {
  State(runtime::Team& of, const GroupOptions& options)
      : Steered(approach_of(options, of)),
        team(of),
        least(options.min_chiplets),
        most(options.max_chiplets),
        domain(of.place_domains.add_group()) {
    tag = detail::Word{domain} << detail::kDomainShift;
    threads = options.threads == 0 ? of.size() : options.threads;
    give_working_set(options.working_set_bytes);
    if (options.remember_as.empty()) {
      first = options.spread;
    } else {
      wants_run = true;
    }
  }
  ~State() override { team.domains.drop(domain); }

  // When it is made, its limits must be possible; later it comes as close as it can.
  runtime::SpreadBounds limits() override {
    team.group_seats.follow(team.placement());
    const runtime::SpreadBounds seats = team.group_seats.limits(threads);
    if (members == nullptr) {
      for (const int limit : {least, most, first}) {
        if (limit != 0 && limit != seats.clamp(limit)) {
          throw RuntimeFault("a group of " + std::to_string(threads) + " threads on " +
                             std::to_string(limit) + " chiplets: they can be spread over " +
                             std::to_string(seats.least) + " to " + std::to_string(seats.most) +
                             " chiplets here");
        }
      }
    }
    return {least == 0 ? seats.least : seats.clamp(least),
            most == 0 ? seats.most : seats.clamp(most)};
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
  void ended(const runtime::Run& run, const runtime::RunBounds& limits) override {
    static_cast<Remembered&>(*approach).ended(spread, run, limits);
  }

  runtime::Team& team;
  const int least, most;  // chiplets; 0: no limit
  const std::size_t domain;
  const std::uint32_t forks_before = runtime::forks_before();  // of the process that made it
  runtime::Ranks members;                                      // null: not yet seated
};

Group::Group(Runtime& runtime, const GroupOptions& options) : runtime_(runtime) {
  runtime::Team& team = runtime.team();
  check(options, team);
  state_ = std::make_unique<State>(team, options);
  team.governor().add(*state_);
}

Group::~Group() {
  if (runtime::forks_before() != state_->forks_before) {
    // A child of fork() has no thread that runs the tasks, and another may have held the governor's
    // lock.
    static_cast<void>(state_.release());
    return;
  }
  if (const runtime::Worker* const worker = runtime::Worker::here();
      worker != nullptr && &worker->team == &state_->team && worker->tag == state_->tag) {
    std::fputs(
        "atoll: a Group is destroyed inside one of its own tasks, for which it would wait for "
        "ever: destroy it outside of the group\n",
        stderr);
    std::abort();
  }
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
