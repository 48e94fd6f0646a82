#include "steering.hpp"

#include <algorithm>

namespace atl::duckdb {

namespace {

// Unlike std::clamp, also defined for bounds that cross.
int within(int spread, const Bounds& bounds) {
  return std::max(bounds.least, std::min(spread, bounds.most));
}

}  // namespace

void Steering::set_policy(Policy policy) {
  policy_ = policy;
  by_hand_.reset();
}

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

Decision Steering::begin(std::string_view text, int now, const Bounds& bounds) {
  if (auto decision = given(now, bounds)) return *std::move(decision);
  if (texts_.runs_nothing(text)) return {within(now, bounds), "creates a relation: stays"};
  return texts_.begin(text, bounds);
}

Decision Steering::during(std::string_view text, const Sample& sample) {
  if (auto decision = given(sample.spread, runtime::bounds_of(sample))) return *std::move(decision);
  return texts_.during(text, sample);
}

void Steering::end(std::string_view text, int spread, Run run, const Bounds& bounds) {
  run.by_table = !given(spread, bounds);
  texts_.end(text, spread, run, bounds);
}

}  // namespace atl::duckdb
