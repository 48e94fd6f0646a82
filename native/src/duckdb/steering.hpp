// Decides over how many chiplets to spread DuckDB's workers, query by query. Pure: no clock, no
// thread, no I/O.
//
// All tasks of a DuckDB database are in one queue, so a query runs where the workers sit during the
// query. The policy decides, or a spread set by hand, or, if the policy is `adaptive`, the table of
// query texts (spread_table.hpp), which compares spreads from run to run.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include "controller/spread_table.hpp"

namespace atl::duckdb {

enum class Policy { adaptive, local, distributed, none };

using Bounds = runtime::RunBounds;
using runtime::Run;

// The wanted spreads of one database. Not thread-safe.
class Steering {
 public:
  explicit Steering(Policy policy, runtime::SpreadTable::MakeApproach make,
                    std::size_t capacity = 1024)
      : policy_(policy), texts_(std::move(make), capacity) {}

  // Forgets a spread set by hand and keeps what was learned about queries.
  void set_policy(Policy policy);
  Policy policy() const { return policy_; }
  // Applies until the next `set_policy`. The caller must have checked the bounds.
  void set_by_hand(int spread) { by_hand_ = spread; }

  // Returns the spread at which a query should start. `now` is the current spread.
  Decision begin(std::string_view text, int now, const Bounds& bounds);
  // Handles one interval of a query that runs alone and returns its spread.
  Decision during(std::string_view text, const Sample& sample);
  // Handles the end of a run at `spread`.
  void end(std::string_view text, int spread, Run run, const Bounds& bounds);
  // As SpreadTable's. A text that runs nothing created a relation, which runs under another text.
  bool wants_working_set(std::string_view text) const { return texts_.wants_working_set(text); }
  void ran_nothing(std::string_view text) { texts_.ran_nothing(text); }

 private:
  std::optional<Decision> given(int now, const Bounds& bounds) const;

  Policy policy_;
  std::optional<int> by_hand_;
  runtime::SpreadTable texts_;
};

}  // namespace atl::duckdb
