// The governor: one thread per runtime that, once an interval, samples the team and its groups,
// asks their approaches for a spread, and applies it. It also notices when the process may run on
// fewer or more CPUs than before, and moves the workers.
//
// Each approach is asked at most once an interval, with all that happened since it was last asked;
// a new group neither wakes the governor nor shortens the interval of the others. While no task
// runs, the governor sleeps longer and longer (up to a second).
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "atoll/runtime/controller.hpp"
#include "atoll/runtime/options.hpp"
#include "atoll/runtime/profile.hpp"

namespace atl::runtime {

class Team;

// Something that has a spread: the workers of a runtime, or a group among them.
struct Steered {
  std::shared_ptr<Approach> approach;
  int threads = 1;
  int spread = 1;
  int min_spread = 1;
  int max_spread = 1;
  std::uint64_t tag = 0;  // the domain whose work counts; of the team: 0, all work
  // Applies a spread and updates `spread` and the bounds; under the governor's lock.
  std::function<void(Steered&, int)> seat;
  std::function<std::vector<int>()> workers;
  std::string reason = {};  // of the last decision
  std::optional<std::uint64_t> working_set_bytes = {};
  bool by_hand = false;  // its approach is no longer used

  // The governor's own.
  std::size_t at = 0;  // its place in the governor's list
  bool chooses = false;
  // When it was last asked or had nothing to say, and the values at that time, to subtract. Not
  // known: not yet looked at.
  bool known = false;
  std::chrono::steady_clock::time_point since = std::chrono::steady_clock::now();
  std::vector<TypeWork> work_before = {};  // by type
  std::map<int, FillCounts> fills_before = {};
};

// What was done between two readings of the same meters; both by type.
std::vector<TypeWork> more_work(const std::vector<TypeWork>& before,
                                const std::vector<TypeWork>& now);

class Governor {
 public:
  Governor(Team& team, const RuntimeOptions& options);
  ~Governor();

  // Steers it until `remove`. Its address identifies it.
  void add(std::shared_ptr<Steered> steered);
  void remove(const Steered* steered);
  // For a spread that a user sets. Throws RuntimeFault if it is out of bounds.
  void set_spread(Steered& steered, int spread);
  // Asks the team's approach before it returns, unless that judges by whole intervals, and then
  // looks at short intervals again.
  void look();
  // Reads data of something steered.
  template <class F>
  auto locked(F&& f) const {
    const std::lock_guard lock(mutex_);
    return f();
  }

 private:
  using Clock = std::chrono::steady_clock;
  // What all meters and counters say at one moment.
  struct Readings {
    Clock::time_point now;
    std::vector<TypeWork> work;  // by type, and so by domain
    std::map<int, FillCounts> fills;
  };

  void main();
  bool busy();
  void tick();
  void wake_soon();
  Readings read();
  const FillCounts& fills_of(Readings& readings, int rank) const;
  void remember(Steered& steered, Readings& readings);
  void steer(Steered& steered, Readings& readings);
  void set(Steered& steered, int spread, std::string reason);
  Sample bounds_of(const Steered& steered, Clock::time_point now) const;
  Sample sample(Steered& steered, Readings& readings);
  void follow_mask();
  void reseat();
  void count_choice(Steered& steered, bool chooses);
  // Moves arrays that are partitioned by worker to where the workers sit now.
  void rehome(std::unique_lock<std::mutex>& lock);

  Team& team_;
  const std::chrono::nanoseconds interval_;
  const FillReader fills_;
  const FillLatency latency_;
  const bool traces_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<Steered>> steered_;
  std::size_t choosing_ = 0;  // of them: have a choice
  std::vector<int> mask_;     // as last seen; empty before the first look
  std::uint64_t jobs_before_ = 0;
  bool moved_ = false;  // workers have moved, their memory not yet
  bool woken_ = false;  // the next look is earlier than the thread believes
  std::chrono::nanoseconds pause_;
  Clock::time_point next_look_;
  bool ending_ = false;
  std::stop_source end_;
  std::thread thread_;
};

}  // namespace atl::runtime
