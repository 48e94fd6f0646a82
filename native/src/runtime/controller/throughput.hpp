// Work per busy second, comparable when the mix of task types changes.
//
// Why per busy second: a change of the spread keeps the number of threads, so it changes how long a
// piece of work takes, stalls included. Per elapsed second, a pause of the caller, a shorter queue
// or a stolen CPU would look like a slower cache.
//
// Why per type: when cheap tasks replace expensive ones, units per second rise although nothing got
// faster. So each type is compared with itself, and the logarithms are averaged, weighted by the
// mean of the type's shares of the busy time: the Toernqvist index over matched items (Toernqvist
// 1936; Diewert, "Exact and Superlative Index Numbers", 1976), which compares prices between months
// in which people buy different things.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "atoll/runtime/controller.hpp"

namespace atl::runtime {

class Ledger {
 public:
  // Entries without busy time or with non-finite values are ignored. Busy time without a unit, of
  // tasks that have not ended, belongs to the work that is not matched.
  void add(const std::vector<TypeWork>& work);
  void clear() { types_.clear(); }
  bool empty() const { return types_.empty(); }

  // log(units per busy second in `to` / those in `from`), over the types in both. Empty if these
  // are less than half of the busy time of either: the rest would decide.
  friend std::optional<double> log_speedup(const Ledger& from, const Ledger& to);

 private:
  struct Totals {
    double units = 0;
    double busy_s = 0;
  };
  double busy_s() const;
  std::map<std::uintptr_t, Totals> types_;
};

std::optional<double> log_speedup(const Ledger& from, const Ledger& to);

}  // namespace atl::runtime
