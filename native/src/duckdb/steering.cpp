#include "steering.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace atl::duckdb {

namespace {

// Identifies a longer text by a prefix of this length and a hash of the whole. Two texts with the
// same prefix and hash would be steered as one, which may be slower but is never wrong.
constexpr std::size_t kLongestKey = 512;
// The most runs between two measurements of the working set, because data may change.
constexpr std::uint64_t kLooksApart = 64;
constexpr int kLongestPatience = 64;
// A run is one unit of work of one type, the text.
constexpr std::uintptr_t kWholeRun = 1;

std::string key_of(std::string_view text) {
  if (text.size() <= kLongestKey) return std::string(text);
  return std::string(text.substr(0, kLongestKey)) + '#' +
         std::to_string(std::hash<std::string_view>()(text));
}

// Unlike std::clamp, also defined for bounds that cross.
int within(int spread, const Bounds& bounds) {
  return std::max(bounds.least, std::min(spread, bounds.most));
}

Decision by_working_set(std::optional<std::uint64_t> set, const Bounds& bounds) {
  const std::uint64_t l3 = bounds.chiplet_l3_bytes;
  if (!set) return {bounds.most, "working set unknown: as wide as possible"};
  if (l3 == 0) return {bounds.most, "L3 size unknown: as wide as possible"};
  const std::uint64_t chiplets = *set / l3 + (*set % l3 == 0 ? 0 : 1);
  const auto most = static_cast<std::uint64_t>(std::max(0, bounds.most));
  if (chiplets > most) return {bounds.most, "working set larger than all L3: as wide as possible"};
  // Bounded before it is narrowed, because a set of 2^63 bytes would not fit an int.
  return {within(static_cast<int>(chiplets), bounds),
          "the fewest chiplets whose L3 holds the working set"};
}

// Sets that fit into one chiplet's L3 count as alike, because they lead to the same spread.
bool other_size(std::optional<std::uint64_t> before, std::optional<std::uint64_t> now,
                std::uint64_t chiplet_l3_bytes) {
  if (!before || !now) return before.has_value() != now.has_value();
  const auto [small, large] =
      std::minmax(std::max(*before, chiplet_l3_bytes), std::max(*now, chiplet_l3_bytes));
  return large - small > small;
}

// Some CPUs count fills from memory but not fills from other chiplets.
bool tells_sources(const Fills& fills) { return fills.memory && fills.remote_chiplet; }

// The spread, halved repeatedly down to the least and doubled up to the most. Ascending.
std::vector<int> rungs_through(int spread, const Bounds& bounds) {
  std::vector<int> rungs = {spread};
  while (rungs.back() > bounds.least) rungs.push_back(std::max(bounds.least, rungs.back() / 2));
  std::ranges::reverse(rungs);
  while (rungs.back() < bounds.most) {
    rungs.push_back(rungs.back() + std::min(rungs.back(), bounds.most - rungs.back()));
  }
  return rungs;
}

}  // namespace

void WorkingSet::add(std::uint64_t bytes, bool comparable) {
  if (!bytes_ || bytes >= *bytes_ / 2) {
    bytes_ = std::max(bytes, bytes_.value_or(0));
    smaller_looks_ = 0;
    smaller_most_ = 0;
    return;
  }
  // A run that failed or was crowded may have needed less than usual.
  if (!comparable) return;
  smaller_most_ = std::max(smaller_most_, bytes);
  if (++smaller_looks_ < patience_) return;
  bytes_ = smaller_most_;
  smaller_looks_ = 0;
  smaller_most_ = 0;
  patience_ = std::min(2 * patience_, kLongestPatience);
}

Steering::Steering(Policy policy, MakeApproach make, std::size_t capacity)
    : policy_(policy), make_(std::move(make)), capacity_(std::max<std::size_t>(1, capacity)) {}

void Steering::set_policy(Policy policy) {
  policy_ = policy;
  by_hand_.reset();
}

void Steering::set_by_hand(int spread) { by_hand_ = spread; }

// The decision that applies to every query; nullopt: the query's approach decides.
std::optional<Decision> Steering::given(int now, const Bounds& bounds) const {
  // The mask may have shrunk since.
  if (by_hand_) return Decision{within(*by_hand_, bounds), "set by hand"};
  switch (policy_) {
    case Policy::none: return Decision{within(now, bounds), "policy none: stays"};
    case Policy::local: return Decision{bounds.least, "policy local"};
    case Policy::distributed: return Decision{within(bounds.most, bounds), "policy distributed"};
    case Policy::adaptive: break;
  }
  return std::nullopt;
}

Decision Steering::begin(std::string_view key, int now, const Bounds& bounds) {
  if (auto decision = given(now, bounds)) return *std::move(decision);
  Known& text = known(key);
  text.asked_during = false;
  if (text.runs_nothing) return {within(now, bounds), "creates a relation: stays"};
  if (text.bounds != bounds) begin_anew(text, bounds);
  return text.wanted;
}

bool Steering::wants_working_set(std::string_view key) const {
  const auto found = known_.find(key_of(key));
  if (found == known_.end()) return true;
  const Known& text = *found->second;
  if (text.runs_nothing) return false;
  return text.runs % kLooksApart == 0 || std::has_single_bit(text.runs) ||
         text.working_set.in_doubt();
}

void Steering::ran_nothing(std::string_view key) {
  Known& text = known(key);
  text.runs_nothing = text.runs == 0;
}

Decision Steering::during(std::string_view key, const Sample& sample) {
  const Bounds bounds{.least = sample.min_spread, .most = sample.max_spread};
  if (auto decision = given(sample.spread, bounds)) return *std::move(decision);
  Known& text = known(key);
  // Forgotten since it started.
  if (!text.bounds) return {within(sample.spread, bounds), "unknown: stays"};
  const int wanted = within(text.wanted.spread, bounds);
  // With an interval from before the move, or one without usable fills, the approach would start
  // again from the workers' current spread.
  if (sample.spread != wanted || !tells_sources(sample.fills)) return {wanted, text.wanted.reason};
  text.asked_during = true;
  text.wanted = approach_of(text).step(sample);
  return text.wanted;
}

void Steering::end(std::string_view key, int spread, const Run& run, const Bounds& bounds) {
  Known& text = known(key);
  ++text.runs;
  text.runs_nothing = false;
  if (run.working_set_bytes) text.working_set.add(*run.working_set_bytes, run.comparable);
  if (text.runs == 1 || text.bounds != bounds ||
      other_size(text.begun_with, text.working_set.bytes(), bounds.chiplet_l3_bytes)) {
    begin_anew(text, bounds);
    return;
  }
  // Under another policy, or with a spread set by hand, it did not run where its approach wanted
  // it. The approach would drop what it knows if it got such a run.
  if (given(spread, bounds) || spread != text.wanted.spread) return;
  if (!run.comparable || text.asked_during) return;
  // A time of 0 may come from a coarse clock. (`step` uses the wall time.)
  if (!(std::isfinite(run.busy_s) && run.busy_s > 0)) return;
  if (bounds.least >= bounds.most) return;  // no choice
  text.wanted = learn(text, spread, run, bounds);
}

// Passes a comparable run to the approach. Without counters, rungs stand for spreads.
Decision Steering::learn(Known& text, int spread, const Run& run, const Bounds& bounds) {
  Sample sample{.elapsed_s = run.wall_s,
                .spread = spread,
                .min_spread = bounds.least,
                .max_spread = bounds.most,
                .threads = bounds.threads,
                .fills = run.fills,
                .latency = run.latency,
                .working_set_bytes = text.working_set.bytes(),
                .chiplet_l3_bytes = bounds.chiplet_l3_bytes,
                .work = {{.type = kWholeRun, .units = 1, .busy_s = run.busy_s}}};
  if (tells_sources(run.fills)) return approach_of(text).step(sample);
  auto rung = std::ranges::find(text.rungs, spread);
  if (rung == text.rungs.end()) {
    text.rungs = rungs_through(spread, bounds);
    rung = std::ranges::find(text.rungs, spread);
  }
  sample.spread = static_cast<int>(rung - text.rungs.begin()) + 1;
  sample.min_spread = 1;
  sample.max_spread = static_cast<int>(text.rungs.size());
  const Decision decision = approach_of(text).step(sample);
  return {text.rungs[static_cast<std::size_t>(decision.spread) - 1], decision.reason};
}

void Steering::begin_anew(Known& text, const Bounds& bounds) {
  text.approach.reset();
  text.rungs.clear();
  text.begun_with = text.working_set.bytes();
  text.bounds = bounds;
  if (bounds.least >= bounds.most) {
    text.wanted = {bounds.least, "no choice: the workers have only this spread"};
  } else if (text.runs == 0) {
    text.wanted = {bounds.most, "first run: as wide as possible"};
  } else {
    text.wanted = by_working_set(text.begun_with, bounds);
  }
}

Approach& Steering::approach_of(Known& text) {
  if (!text.approach) text.approach = make_(++seeds_);
  return *text.approach;
}

// Returns the record of a text, creating it if needed, and marks it as the latest used.
Steering::Known& Steering::known(std::string_view text) {
  std::string key = key_of(text);
  if (const auto found = known_.find(key); found != known_.end()) {
    order_.splice(order_.begin(), order_, found->second);
    return order_.front();
  }
  order_.push_front({.key = std::move(key)});
  known_.emplace(order_.front().key, order_.begin());
  if (order_.size() > capacity_) {
    known_.erase(order_.back().key);
    order_.pop_back();
  }
  return order_.front();
}

}  // namespace atl::duckdb
