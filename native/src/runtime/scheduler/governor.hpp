// The governor: one thread per runtime that, once an interval, samples the team and its groups,
// asks their approaches for a spread, and applies it. It also notices when the process may run on
// fewer or more CPUs than before, and moves the workers.
//
// While no task runs, it sleeps longer and longer (up to a second).
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

  // The values of the last sample, to subtract.
  std::map<std::uintptr_t, TypeWork> work_before = {};
  std::map<int, FillCounts> fills_before = {};
};

class Governor {
 public:
  Governor(Team& team, const RuntimeOptions& options);
  ~Governor();

  // Steers it until `remove`. Its address identifies it.
  void add(std::shared_ptr<Steered> steered);
  void remove(const Steered* steered);
  // For a spread that a user sets. Throws RuntimeFault if it is out of bounds.
  void set_spread(Steered& steered, int spread);
  // Asks all approaches before it returns, and then looks at short intervals again.
  void look();
  // Reads data of something steered.
  template <class F>
  auto locked(F&& f) const {
    const std::lock_guard lock(mutex_);
    return f();
  }

 private:
  using Clock = std::chrono::steady_clock;
  void main();
  double elapsed();  // since the last look
  bool tick(double elapsed_s);
  void steer(Steered& steered, double elapsed_s);
  void set(Steered& steered, int spread, std::string reason);
  Sample sample(Steered& steered, double elapsed_s);
  void follow_mask();
  void reseat();
  void meter_what_is_steered();
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
  std::vector<int> mask_;  // as last seen; empty before the first look
  std::uint64_t jobs_before_ = 0;
  bool moved_ = false;                     // workers have moved, their memory not yet
  bool asked_ = false;                     // another thread has looked
  Clock::time_point last_ = Clock::now();  // the time of the last look
  bool ending_ = false;
  std::stop_source end_;
  std::thread thread_;
};

}  // namespace atl::runtime
