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
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "atoll/runtime/controller.hpp"
#include "atoll/runtime/options.hpp"
#include "controller/spread_table.hpp"
#include "controller/working_set.hpp"
#include "readings.hpp"
#include "seating.hpp"

namespace atl::runtime {

class Team;

// Something that has a spread: the workers of a runtime, or a group among them. All members are
// used with the governor's lock held.
class Steered {
 public:
  explicit Steered(std::shared_ptr<Approach> by) : approach(std::move(by)) {}
  virtual ~Steered() = default;
  Steered(const Steered&) = delete;
  Steered& operator=(const Steered&) = delete;

  // The spreads that are possible as the workers sit now.
  virtual SpreadBounds limits() = 0;
  // Applies a spread within `limits`. If it throws, it may be half applied; a group's is not.
  virtual void seat(int spread) = 0;
  virtual std::span<const int> workers() const = 0;  // their ranks
  // If it `wants_run` and has a choice: what was done from `add` to `remove`. May throw.
  virtual void ended(const Run&, const RunBounds&) {}

  std::shared_ptr<Approach> approach;
  int threads = 1;
  int spread = 0;  // 0: not yet seated
  SpreadBounds bounds;
  std::uint64_t tag = 0;    // the domain whose work counts; of the team: 0, all work
  std::string reason = {};  // of the last decision
  // The working set is the user's, if there is one; else it is measured for an approach that goes
  // by it.
  void give_working_set(std::optional<std::uint64_t> bytes) {
    working_set_bytes = bytes;
    measures_set = !bytes && approach->wants_working_set();
  }
  std::optional<std::uint64_t> working_set_bytes = {};  // given, or as last measured
  WorkingSetSource working_set_source = WorkingSetSource::given;
  bool measures_set = false;
  bool by_hand = false;  // its approach is no longer used
  int first = 0;         // the spread to begin with; 0: as the approach says
  bool wants_run = false;

 private:
  friend class Governor;

  std::size_t at_ = 0;  // its place in the governor's list
  bool chooses_ = false;
  std::shared_ptr<Approach> given_up_ = {};  // could not map; kept: its end is the user's code
  int seated_in_vain_ = 0;                   // times in a row without memory
  // When it was last asked or had nothing to say, and the values at that time, to subtract. Not
  // known: not yet looked at.
  bool known_ = false;
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
  LastReading before_ = {};
  RecentFills recent_fills_ = {};
  struct Begin {
    std::chrono::steady_clock::time_point at;
    int spread;
    std::vector<TypeWork> work;  // of all
  };
  std::optional<Begin> begin_ = {};  // of its run; without a value it is of no use
};

class Governor {
 public:
  Governor(Team& team, const RuntimeOptions& options);
  ~Governor();

  // Seats it, and steers it until `remove`. O(1) if a group of as many threads was seated before
  // since the workers have moved, and it wants no run.
  void add(Steered& steered);
  void remove(Steered& steered) noexcept;
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
  void main();
  bool busy();
  bool goes_by_occupancy() const;
  void tick(const Occupancy& occupancy);
  void wake_soon();
  void remember(Steered& steered, Readings& readings);
  void steer(Steered& steered, Readings& readings);
  template <class Step>
  void guarded(Steered& steered, Step&& step);
  void give_up(Steered& steered);
  void set(Steered& steered, int spread, std::string reason);
  void seat(Steered& steered, int spread);
  void report_run(Steered& steered);
  void seat_all();
  void seat_again(Steered& steered);
  Sample bounds_of(const Steered& steered, Clock::time_point now) const;
  Sample sample(Steered& steered, Readings& readings);
  void measure_set(Steered& steered, const Occupancy& occupancy, Sample& sample);
  void follow_mask();
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
  std::vector<Steered*> steered_;  // the team first
  std::size_t choosing_ = 0;       // of them: have a choice
  std::vector<int> mask_;          // as last seen; empty before the first look
  std::uint64_t jobs_before_ = 0;
  // What is still to do, and tried again at the next look if there was no memory for it: to seat
  // the workers, and to move memory after them.
  bool unseated_ = false;
  bool moved_ = false;
  bool woken_ = false;  // there is something to do before the time that the thread waits for
  std::chrono::nanoseconds pause_;
  Clock::time_point next_look_;
  bool ending_ = false;
  std::stop_source end_;
  std::thread thread_;
};

}  // namespace atl::runtime
