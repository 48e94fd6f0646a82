#include "governor.hpp"

#include <pthread.h>

#include <algorithm>
#include <span>
#include <utility>

#include "affinity.hpp"
#include "atoll/runtime/placed_memory.hpp"
#include "team.hpp"
#include "worker.hpp"

namespace atl::runtime {

namespace {

constexpr std::chrono::seconds kLongestSleep(1);

// Number of stacks per node that keep their memory while nothing runs: the first ones that a burst
// of tasks needs. A little-used stack has a page or two.
constexpr std::size_t kIdleStacks = 256;

// What others may have of a run's CPU time if that is to show how good its spread was.
constexpr double kOthersShare = 0.1;

// Times in a row, an interval or more apart, that workers find no memory to move before their
// approach's own map is taken for the cause.
constexpr int kMostInVain = 10;

// An approach that maps threads by spread_cores.
constexpr const char* kPlainMapping = "static-local";

bool has_choice(const Steered& steered) {
  return !steered.by_hand && steered.bounds.least < steered.bounds.most;
}

}  // namespace

Governor::Governor(Team& team, const RuntimeOptions& options)
    : team_(team),
      interval_(options.interval),
      fills_(options.fills),
      latency_(*options.latency),
      traces_(options.trace_events > 0),
      pause_(options.interval),
      next_look_(Clock::now() + pause_) {
  thread_ = std::thread([this] { main(); });
}

Governor::~Governor() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  end_.request_stop();
  changed_.notify_all();
  thread_.join();
}

void Governor::add(Steered& steered) {
  const std::lock_guard lock(mutex_);
  steered.at_ = steered_.size();
  steered_.push_back(&steered);
  try {
    steered.bounds = steered.limits();
    steered.spread = steered.bounds.least;
    const Sample bounds = bounds_of(steered, steered.since_);
    seat(steered, steered.first != 0 ? steered.first : steered.approach->begin(bounds));
    if (steered.wants_run && steered.chooses_) {
      steered.begin_ = {Clock::now(), steered.spread, read_work(team_)};
    }
  } catch (...) {
    count_choice(steered, false);
    steered_.pop_back();
    throw;
  }
  if (steered.chooses_) wake_soon();
}

void Governor::remove(Steered& steered) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    if (steered.begin_ && !steered.by_hand) report_run(steered);
  } catch (const std::bad_alloc&) {
    // It teaches nothing then.
  }
  count_choice(steered, false);
  steered_[steered.at_] = steered_.back();
  steered_[steered.at_]->at_ = steered.at_;
  steered_.pop_back();
}

void Governor::report_run(Steered& steered) {
  const Clock::time_point now = Clock::now();
  Run run{.wall_s = std::chrono::duration<double>(now - steered.begin_->at).count(),
          .working_set_bytes = steered.working_set_bytes,
          .latency = latency_};
  double others_s = 0;
  for (const TypeWork& entry : more_work(steered.begin_->work, read_work(team_))) {
    (detail::tag_of(entry.type) == steered.tag ? run.busy_s : others_s) += entry.busy_s;
  }
  run.comparable =
      steered.spread == steered.begin_->spread && others_s <= kOthersShare * run.busy_s;
  steered.ended(run, atl::runtime::bounds_of(bounds_of(steered, now)));
}

void Governor::set_spread(Steered& steered, int spread) {
  const std::lock_guard lock(mutex_);
  const SpreadBounds bounds = steered.bounds;
  if (spread < bounds.least || spread > bounds.most) {
    throw RuntimeFault("a spread of " + std::to_string(spread) + ": " +
                       std::to_string(steered.threads) + " threads can be spread over " +
                       std::to_string(bounds.least) + " to " + std::to_string(bounds.most) +
                       " chiplets here");
  }
  set(steered, spread, "set by hand");
  steered.by_hand = true;
  count_choice(steered, false);
}

void Governor::look() {
  const std::lock_guard lock(mutex_);
  Steered& team = *steered_.front();
  guarded(team, [&] {
    if (!has_choice(team) || team.approach->needs_intervals()) return;
    // Without counts: those belong to the whole interval, which goes on.
    Decision decision = team.approach->step(bounds_of(team, Clock::now()));
    set(team, decision.spread, std::move(decision.reason));
  });
  wake_soon();
}

// If the thread would sleep longer than an interval, it looks again after one.
void Governor::wake_soon() {
  if (pause_ == interval_) return;
  pause_ = interval_;
  next_look_ = Clock::now() + interval_;
  woken_ = true;
  changed_.notify_all();
}

void Governor::set(Steered& steered, int spread, std::string reason) {
  const bool moves = spread != steered.spread || unseated_;
  if (moves && steered.tag != 0) seat(steered, spread);
  steered.reason = std::move(reason);
  if (!moves || steered.tag != 0) return;
  steered.spread = spread;
  seat_all();
  if (unseated_) throw std::bad_alloc();
}

void Governor::seat(Steered& steered, int spread) {
  steered.bounds = steered.limits();
  spread = steered.bounds.clamp(spread);
  steered.seat(spread);
  steered.spread = spread;
  count_choice(steered, has_choice(steered));
}

// The team comes first: after its workers move, groups choose among them again. One that lacks
// memory keeps no other from its seats.
void Governor::seat_all() {
  unseated_ = false;
  for (Steered* const steered : steered_) {
    try {
      seat_again(*steered);
    } catch (const std::bad_alloc&) {
      unseated_ = true;
    }
  }
  moved_ = true;
  woken_ = true;
  changed_.notify_all();
}

void Governor::seat_again(Steered& steered) {
  // In a handler: Approach::map threw. They must sit elsewhere all the same.
  const auto seat_plainly = [&] {
    std::shared_ptr<Approach> plain = approach_by_name(kPlainMapping);
    give_up(steered);
    steered.given_up_ = std::exchange(steered.approach, std::move(plain));
    seat(steered, steered.spread);
  };
  try {
    seat(steered, steered.spread);
    steered.seated_in_vain_ = 0;
  } catch (const std::bad_alloc&) {
    if (++steered.seated_in_vain_ < kMostInVain) throw;
    seat_plainly();
  } catch (...) {
    seat_plainly();
  }
}

void Governor::main() {
  // `atoll inspect` recognises it by this name: it keeps the process's original mask.
  pthread_setname_np(pthread_self(), "atoll-governor");
  std::unique_lock lock(mutex_);
  bool was_busy = false;
  while (!ending_) {
    changed_.wait_until(lock, next_look_, [&] { return ending_ || woken_; });
    woken_ = false;
    bool now_busy = was_busy;
    try {
      if (moved_) rehome(lock);
      if (ending_) return;
      if (Clock::now() < next_look_) continue;
      follow_mask();
      if (unseated_) seat_all();
      const bool by_occupancy = goes_by_occupancy();
      // Without the lock, for which users' calls wait: the lender of the workers may take long, and
      // so may the kernel's files.
      lock.unlock();
      now_busy = busy();
      const Occupancy occupancy = now_busy && by_occupancy ? read_occupancy(team_) : Occupancy{};
      lock.lock();
      if (now_busy) {
        tick(occupancy);
      } else {
        for (Steered* const steered : steered_) steered->since_ = Clock::now();
      }
      if (moved_) rehome(lock);
    } catch (const std::bad_alloc&) {
      // The next look tries again.
      if (!lock.owns_lock()) lock.lock();
    }
    if (was_busy && !now_busy) team_.stacks.trim(kIdleStacks);
    was_busy = now_busy;
    pause_ = (now_busy && !steered_.empty()) || woken_
                 ? interval_
                 : std::clamp<std::chrono::nanoseconds>(
                       2 * pause_, interval_,
                       std::max<std::chrono::nanoseconds>(interval_, kLongestSleep));
    next_look_ = Clock::now() + pause_;
  }
}

// Metering makes workers read the clock, so only if there is a choice.
void Governor::count_choice(Steered& steered, bool chooses) {
  if (std::exchange(steered.chooses_, chooses) == chooses) return;
  choosing_ += chooses ? 1 : -std::size_t{1};
  if (!chooses) steered.known_ = false;
  team_.meter(choosing_ > 0);
}

// Whether anything ran since the last time. A task that runs for long changes no count, but its
// worker does not sleep.
bool Governor::busy() {
  if (team_.lent) return team_.lent->busy();
  std::uint64_t jobs = 0;
  for (int rank = 0; rank < team_.size(); ++rank) {
    const Counts counts = read_counts(team_.worker(rank).counts);
    jobs += counts.tasks + counts.inline_forks + counts.switches;
  }
  return std::exchange(jobs_before_, jobs) != jobs || team_.parking.sleepers() < team_.size();
}

void Governor::tick(const Occupancy& occupancy) {
  if (traces_) team_.profiler().sample();
  Readings readings(team_, fills_, occupancy);
  for (Steered* const steered : steered_) {
    if (!steered->chooses_) continue;
    guarded(*steered, [&] {
      // New: what its domain and its workers did before belongs to others.
      steered->known_ ? steer(*steered, readings) : remember(*steered, readings);
    });
  }
}

// The approach and the reader of fills are the user's.
template <class Step>
void Governor::guarded(Steered& steered, Step&& step) {
  try {
    step();
  } catch (const std::bad_alloc&) {
    steered.reason = "out of memory";  // the next look tries again; needs no memory itself
  } catch (...) {
    give_up(steered);
  }
}

// In a handler. Nobody else would hear of what was thrown.
void Governor::give_up(Steered& steered) {
  std::string what = "no std::exception";
  try {
    throw;
  } catch (const std::exception& fault) {
    what = fault.what();
  } catch (...) {
  }
  steered.reason = "left as it was: the approach or the reader of fills threw: " + what;
  steered.by_hand = true;
  count_choice(steered, false);
}

void Governor::remember(Steered& steered, Readings& readings) {
  // First: it may throw.
  steered.before_ = LastReading(readings, steered.tag, steered.workers());
  steered.since_ = readings.now;
  steered.known_ = true;
}

void Governor::steer(Steered& steered, Readings& readings) {
  Sample seen = sample(steered, readings);
  remember(steered, readings);
  // It did nothing, so there is nothing to learn. The work of lent workers is not visible here.
  if (seen.work.empty() && !team_.lent) return;
  Decision decision = steered.approach->step(seen);
  set(steered, decision.spread, std::move(decision.reason));
}

// A sample without counts.
Sample Governor::bounds_of(const Steered& steered, Clock::time_point now) const {
  Sample sample;
  sample.elapsed_s = std::chrono::duration<double>(now - steered.since_).count();
  sample.spread = steered.spread;
  sample.min_spread = steered.bounds.least;
  sample.max_spread = steered.bounds.most;
  sample.threads = steered.threads;
  sample.chiplet_l3_bytes = team_.seats.places.chiplet_l3_bytes;
  sample.working_set_bytes = steered.working_set_bytes;
  sample.working_set_source = steered.working_set_source;
  sample.latency = latency_;
  return sample;
}

Sample Governor::sample(Steered& steered, Readings& readings) {
  Sample sample = bounds_of(steered, readings.now);
  steered.before_.subtract_from(readings, steered.tag, steered.workers(), sample);
  if (steered.measures_set) measure_set(steered, readings.occupancy, sample);
  return sample;
}

// Only of the team: a group of tasks shares its workers with others. A team without a choice, or
// seen for the first time, is not asked in this tick.
bool Governor::goes_by_occupancy() const {
  if (steered_.empty()) return false;
  const Steered& team = *steered_.front();
  return team.measures_set && team.known_ && team.working_set_source != WorkingSetSource::fills;
}

// From resctrl where it counts the team's workers alone, else from fills. One source for each of
// the steered, from the first measure on.
void Governor::measure_set(Steered& steered, const Occupancy& occupancy, Sample& sample) {
  if (steered.working_set_source == WorkingSetSource::given) {
    steered.working_set_source = steered.tag == 0 && occupancy.is_known ? WorkingSetSource::resctrl
                                                                        : WorkingSetSource::fills;
  }
  if (steered.working_set_source == WorkingSetSource::resctrl) {
    steered.working_set_bytes = occupancy.set_bytes;
  } else {
    steered.recent_fills_.add(sample);
    steered.working_set_bytes = steered.recent_fills_.bytes();
  }
  sample.working_set_bytes = steered.working_set_bytes;
  sample.working_set_source = steered.working_set_source;
}

// The thread is never bound, so its mask is what process and cgroup allow; the kernel reduces it
// when a cpuset shrinks, and a user's taskset of all threads changes it, too. The first look
// compares it with the mask that the team used: it may have changed before this thread began.
void Governor::follow_mask() {
  std::vector<int> mask = cpus_of_this_thread();
  if (mask == mask_) return;
  if (team_.seats.restrict_to(mask)) unseated_ = true;
  mask_ = std::move(mask);
}

// Without the lock: it takes about a millisecond for 2 MiB, and callers that read a spread should
// not wait for it. Later moves are handled next.
void Governor::rehome(std::unique_lock<std::mutex>& lock) {
  const NodeMap map = team_.node_map();
  moved_ = false;
  if (map.nodes.size() < 2) return;
  lock.unlock();
  try {
    rehome_all(map, {.stop = end_.get_token()});
  } catch (...) {
    lock.lock();
    moved_ = true;
    throw;
  }
  lock.lock();
}

}  // namespace atl::runtime
