#include "governor.hpp"

#include <pthread.h>

#include <algorithm>

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

bool has_choice(const Steered& steered) {
  return !steered.by_hand && steered.min_spread < steered.max_spread;
}

// The values of a user's reader, in the profiler's form.
FillCounts counts_of(const Fills& fills) {
  FillCounts counts;
  counts.of(FillSource::local_chiplet) = fills.local_chiplet;
  counts.of(FillSource::remote_chiplet) = fills.remote_chiplet;
  counts.of(FillSource::remote_node) = fills.remote_node;
  counts.of(FillSource::memory_local) = fills.memory;
  if (fills.memory) counts.of(FillSource::memory_remote) = 0;
  counts.running_share = 1;
  return counts;
}

// A value that one worker lacks is unknown in the sum, too.
std::optional<std::uint64_t> sum(std::optional<std::uint64_t> a, std::optional<std::uint64_t> b) {
  if (!a || !b) return {};
  return *a + *b;
}

Fills sum(const Fills& a, const Fills& b) {
  return {sum(a.local_chiplet, b.local_chiplet), sum(a.remote_chiplet, b.remote_chiplet),
          sum(a.remote_node, b.remote_node), sum(a.memory, b.memory)};
}

}  // namespace

Governor::Governor(Team& team, const RuntimeOptions& options)
    : team_(team),
      interval_(options.interval),
      fills_(options.fills),
      latency_(options.latency),
      traces_(options.trace_events > 0) {
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

void Governor::add(std::shared_ptr<Steered> steered) {
  {
    const std::lock_guard lock(mutex_);
    steered->seat(*steered, steered->spread);
    steered_.push_back(std::move(steered));
    meter_what_is_steered();
  }
  changed_.notify_all();
}

void Governor::remove(const Steered* steered) {
  const std::lock_guard lock(mutex_);
  std::erase_if(steered_, [&](const auto& other) { return other.get() == steered; });
  meter_what_is_steered();
}

void Governor::set_spread(Steered& steered, int spread) {
  const std::lock_guard lock(mutex_);
  if (spread < steered.min_spread || spread > steered.max_spread) {
    throw RuntimeFault("a spread of " + std::to_string(spread) + ": " +
                       std::to_string(steered.threads) + " threads can be spread over " +
                       std::to_string(steered.min_spread) + " to " +
                       std::to_string(steered.max_spread) + " chiplets here");
  }
  steered.by_hand = true;
  meter_what_is_steered();
  set(steered, spread, "set by hand");
}

void Governor::look() {
  {
    const std::lock_guard lock(mutex_);
    const double elapsed_s = elapsed();
    for (const auto& steered : steered_) steer(*steered, elapsed_s);
    asked_ = true;
  }
  changed_.notify_all();
}

double Governor::elapsed() {
  const Clock::time_point now = Clock::now();
  return std::chrono::duration<double>(now - std::exchange(last_, now)).count();
}

// The team comes first: after its workers move, groups choose among them again.
void Governor::set(Steered& steered, int spread, std::string reason) {
  steered.reason = std::move(reason);
  if (spread == steered.spread) return;
  steered.seat(steered, spread);
  if (steered.tag != 0) return;
  reseat();
  moved_ = true;
  changed_.notify_all();
}

void Governor::main() {
  // `atoll inspect` recognises it by this name: it keeps the process's original mask.
  pthread_setname_np(pthread_self(), "atoll-governor");
  std::unique_lock lock(mutex_);
  std::chrono::nanoseconds pause = interval_;
  bool was_busy = false;
  while (!ending_) {
    const std::size_t known = steered_.size();
    changed_.wait_for(lock, pause,
                      [&] { return ending_ || asked_ || moved_ || steered_.size() > known; });
    if (moved_) rehome(lock);
    if (ending_) return;
    asked_ = false;
    follow_mask();
    const bool busy = tick(elapsed());
    if (moved_) rehome(lock);
    if (was_busy && !busy) team_.stacks.trim(kIdleStacks);
    was_busy = busy;
    pause = busy && !steered_.empty()
                ? interval_
                : std::clamp<std::chrono::nanoseconds>(
                      2 * pause, interval_,
                      std::max<std::chrono::nanoseconds>(interval_, kLongestSleep));
  }
}

// Metering makes workers read the clock, so only if there is a choice.
void Governor::meter_what_is_steered() {
  team_.meter(std::any_of(steered_.begin(), steered_.end(),
                          [](const auto& steered) { return has_choice(*steered); }));
}

// Whether anything ran since the last time.
bool Governor::tick(double elapsed_s) {
  std::uint64_t jobs = 0;
  for (int rank = 0; rank < team_.size(); ++rank) {
    const Counts counts = read_counts(team_.worker(rank).counts);
    jobs += counts.tasks + counts.inline_forks + counts.switches;
  }
  const bool lent = team_.lent && team_.lent->busy();
  const bool busy = std::exchange(jobs_before_, jobs) != jobs || lent;
  if (!busy) return false;
  if (traces_) team_.profiler().sample();
  for (const auto& steered : steered_) steer(*steered, elapsed_s);
  return true;
}

void Governor::steer(Steered& steered, double elapsed_s) {
  if (!has_choice(steered)) return;
  const Sample seen = sample(steered, elapsed_s);
  // It did nothing, so there is nothing to learn. The work of lent workers is not visible here.
  if (seen.work.empty() && !team_.lent) return;
  Decision decision = steered.approach->step(seen);
  set(steered, decision.spread, std::move(decision.reason));
}

Sample Governor::sample(Steered& steered, double elapsed_s) {
  Sample sample;
  sample.elapsed_s = elapsed_s;
  sample.spread = steered.spread;
  sample.min_spread = steered.min_spread;
  sample.max_spread = steered.max_spread;
  sample.threads = steered.threads;
  sample.chiplet_l3_bytes = team_.seats.places.chiplet_l3_bytes;
  sample.working_set_bytes = steered.working_set_bytes;
  sample.latency = latency_;

  // All workers: a former member keeps its counts.
  std::map<std::uintptr_t, TypeWork> work;
  for (int rank = 0; rank < team_.size(); ++rank) {
    team_.worker(rank).meter().read([&](Meter::Key key, std::uint64_t units, std::uint64_t busy) {
      if (steered.tag != 0 && detail::tag_of(key) != steered.tag) return;
      TypeWork& type = work[key];
      type.type = key;
      type.units += static_cast<double>(units);
      type.busy_s += static_cast<double>(busy) * 1e-9;
    });
  }
  // Counts of workers that were members at both ends of the interval.
  std::map<int, FillCounts> fills;
  bool first = true;
  for (const int rank : steered.workers()) {
    const FillCounts now = fills_ ? counts_of(fills_(rank)) : team_.profiler().fills(rank);
    fills.emplace(rank, now);
    const auto before = steered.fills_before.find(rank);
    if (before == steered.fills_before.end()) continue;
    const Fills more = controller_fills(before->second, now);
    sample.fills = first ? more : sum(sample.fills, more);
    first = false;
  }
  steered.fills_before = std::move(fills);
  for (const auto& [key, type] : work) {
    const TypeWork before =
        steered.work_before.contains(key) ? steered.work_before[key] : TypeWork{};
    if (type.units > before.units) {
      sample.work.push_back({key, type.units - before.units, type.busy_s - before.busy_s});
    }
  }
  steered.work_before = std::move(work);
  return sample;
}

// The thread is never bound, so its mask is what process and cgroup allow; the kernel reduces it
// when a cpuset shrinks, and a user's taskset of all threads changes it, too. The first look
// compares it with the mask that the team used: it may have changed before this thread began.
void Governor::follow_mask() {
  std::vector<int> mask = cpus_of_this_thread();
  if (mask == mask_) return;
  mask_ = std::move(mask);
  if (!team_.seats.restrict_to(mask_)) return;
  reseat();
  moved_ = true;
}

// Without the lock: it takes about a millisecond for 2 MiB, and callers that read a spread should
// not wait for it. Later moves are handled next.
void Governor::rehome(std::unique_lock<std::mutex>& lock) {
  moved_ = false;
  const NodeMap map = team_.node_map();
  if (map.nodes.size() < 2) return;
  lock.unlock();
  rehome_all(map, {.stop = end_.get_token()});
  lock.lock();
}

void Governor::reseat() {
  for (const auto& steered : steered_) steered->seat(*steered, steered->spread);
  meter_what_is_steered();
}

}  // namespace atl::runtime
