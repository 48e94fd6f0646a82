// Whether the throughput of a group at rest has shifted: a two-sided CUSUM chart (Page,
// "Continuous Inspection Schemes", Biometrika 1954) against its first intervals.
#pragma once

#include "atoll/runtime/controller.hpp"
#include "throughput.hpp"

namespace atl::runtime {

class Shift {
 public:
  // Adds an interval; true once the throughput has left its reference, and from then on until
  // `restart`. Ignores intervals without work.
  bool watch(const std::vector<TypeWork>& work);
  void restart() { *this = Shift(); }

 private:
  void learn(const Ledger& now);
  Ledger reference_;
  Ledger previous_;
  double range_sum_ = 0;  // of |log speedup| from each interval of the reference to the next
  int ranges_ = 0;
  int learnt_ = 0;
  int strange_ = 0;  // intervals in a row that cannot be compared with the reference
  double up_ = 0;
  double down_ = 0;
  bool shifted_ = false;
};

}  // namespace atl::runtime
