#include "spread_table.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace atl::runtime {

namespace {

// Identifies a longer name by a prefix of this length and a hash of the whole. Two names with the
// same prefix and hash would be steered as one, which may be slower but is never wrong.
constexpr std::size_t kLongestKey = 512;
// The most runs between two measurements of the working set, because data may change.
constexpr std::uint64_t kLooksApart = 64;
constexpr int kLongestPatience = 64;
// A run is one unit of work of one type, the name.
constexpr std::uintptr_t kWholeRun = 1;

std::string key_of(std::string_view text) {
  if (text.size() <= kLongestKey) return std::string(text);
  return std::string(text.substr(0, kLongestKey)) + '#' +
         std::to_string(std::hash<std::string_view>()(text));
}

// Unlike std::clamp, also defined for bounds that cross.
int within(int spread, const RunBounds& bounds) {
  return std::max(bounds.least, std::min(spread, bounds.most));
}

Decision by_working_set(std::optional<std::uint64_t> set, const RunBounds& bounds) {
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
std::vector<int> rungs_through(int spread, const RunBounds& bounds) {
  std::vector<int> rungs = {spread};
  while (rungs.back() > bounds.least) rungs.push_back(std::max(bounds.least, rungs.back() / 2));
  std::ranges::reverse(rungs);
  while (rungs.back() < bounds.most) {
    rungs.push_back(rungs.back() + std::min(rungs.back(), bounds.most - rungs.back()));
  }
  return rungs;
}

}  // namespace

RunBounds bounds_of(const Sample& sample) {
  return {sample.min_spread, sample.max_spread, sample.threads, sample.chiplet_l3_bytes};
}

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

SpreadTable::SpreadTable(MakeApproach make, std::size_t capacity)
    : make_(std::move(make)), capacity_(std::max<std::size_t>(1, capacity)) {}

Decision SpreadTable::begin(std::string_view name, const RunBounds& bounds, int first) {
  Known& text = known(name);
  text.asked_during = false;
  text.first = first;
  if (text.bounds != bounds) begin_anew(text, bounds);
  return text.wanted;
}

bool SpreadTable::wants_working_set(std::string_view name) const {
  const Known* const text = find(name);
  if (text == nullptr) return true;
  if (text->runs_nothing) return false;
  return text->runs % kLooksApart == 0 || std::has_single_bit(text->runs) ||
         text->working_set.in_doubt();
}

void SpreadTable::ran_nothing(std::string_view name) {
  Known& text = known(name);
  text.runs_nothing = text.runs == 0;
}

bool SpreadTable::runs_nothing(std::string_view name) const {
  const Known* const text = find(name);
  return text != nullptr && text->runs_nothing;
}

Decision SpreadTable::during(std::string_view name, const Sample& sample) {
  const RunBounds bounds = bounds_of(sample);
  Known& text = known(name);
  // Forgotten since it started.
  if (!text.bounds) return {within(sample.spread, bounds), "unknown: stays"};
  const int wanted = within(text.wanted.spread, bounds);
  // With an interval from before the move, or one without usable counts, the approach would start
  // again from the current spread.
  const bool counts = tells_sources(sample.fills) ||
                      std::ranges::any_of(sample.work, [](auto& work) { return work.units > 0; });
  if (sample.spread != wanted || !counts) return {wanted, text.wanted.reason};
  text.asked_during = true;
  text.wanted = learn(text, sample);
  return text.wanted;
}

void SpreadTable::end(std::string_view name, int spread, const Run& run, const RunBounds& bounds) {
  Known& text = known(name);
  ++text.runs;
  text.runs_nothing = false;
  if (run.working_set_bytes) text.working_set.add(*run.working_set_bytes, run.comparable);
  if (text.runs == 1 || text.bounds != bounds ||
      other_size(text.begun_with, text.working_set.bytes(), bounds.chiplet_l3_bytes)) {
    begin_anew(text, bounds);
    return;
  }
  // Where it did not run at the spread that its approach wanted, that would drop what it knows.
  if (!run.by_table || spread != text.wanted.spread) return;
  if (!run.comparable || text.asked_during) return;
  // A time of 0 may come from a coarse clock. (`step` uses the wall time.)
  if (!(std::isfinite(run.busy_s) && run.busy_s > 0)) return;
  if (bounds.least >= bounds.most) return;  // no choice
  text.wanted = learn(text, {.elapsed_s = run.wall_s,
                             .spread = spread,
                             .min_spread = bounds.least,
                             .max_spread = bounds.most,
                             .threads = bounds.threads,
                             .fills = run.fills,
                             .latency = run.latency,
                             .working_set_bytes = text.working_set.bytes(),
                             .chiplet_l3_bytes = bounds.chiplet_l3_bytes,
                             .work = {{.type = kWholeRun, .units = 1, .busy_s = run.busy_s}}});
}

// Asks the approach. Without counters, rungs stand for spreads.
Decision SpreadTable::learn(Known& text, Sample sample) {
  if (tells_sources(sample.fills)) return approach_of(text).step(sample);
  auto rung = std::ranges::find(text.rungs, sample.spread);
  if (rung == text.rungs.end()) {
    text.rungs = rungs_through(sample.spread, bounds_of(sample));
    rung = std::ranges::find(text.rungs, sample.spread);
  }
  sample.spread = static_cast<int>(rung - text.rungs.begin()) + 1;
  sample.min_spread = 1;
  sample.max_spread = static_cast<int>(text.rungs.size());
  const Decision decision = approach_of(text).step(sample);
  return {text.rungs[static_cast<std::size_t>(decision.spread) - 1], decision.reason};
}

void SpreadTable::begin_anew(Known& text, const RunBounds& bounds) {
  text.approach.reset();
  text.rungs.clear();
  text.begun_with = text.working_set.bytes();
  text.bounds = bounds;
  if (bounds.least >= bounds.most) {
    text.wanted = {bounds.least, "no choice: there is only this spread"};
  } else if (!text.begun_with && text.first != 0) {
    text.wanted = {within(text.first, bounds), "begins as given"};
  } else if (text.runs == 0) {
    text.wanted = {bounds.most, "first run: as wide as possible"};
  } else {
    text.wanted = by_working_set(text.begun_with, bounds);
  }
}

Approach& SpreadTable::approach_of(Known& text) {
  if (!text.approach) text.approach = make_(text.key, ++seeds_);
  return *text.approach;
}

const SpreadTable::Known* SpreadTable::find(std::string_view name) const {
  const auto found = known_.find(key_of(name));
  return found == known_.end() ? nullptr : &*found->second;
}

// Returns the record of a name, creating it if needed, and marks it as the latest used.
SpreadTable::Known& SpreadTable::known(std::string_view name) {
  std::string key = key_of(name);
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

}  // namespace atl::runtime
