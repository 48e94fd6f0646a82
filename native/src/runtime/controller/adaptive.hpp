// The default approach: fills from memory push to spread, fills from other chiplets to compact; it
// takes back and remembers a move that did not pay.
//
// It compares the share of the group's busy time that its fills cost: their number times the extra
// time of such a fill over one from the own L3, divided by the busy core time. That is an upper
// estimate (cores overlap misses), but independent of the machine's size, the interval's length and
// the load. The busy time of a piece of work is computation plus stalls, so the share falls exactly
// when stalls per piece of work fall. So it can also judge a move.
//
// Samples without fills go to `switchback`.
//
// Promise: if the job does not change, the moves of n intervals are O(log n) until the holds have
// reached their longest, then at most two in kLongestHold intervals.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "atoll/runtime/controller.hpp"
#include "switchback.hpp"

namespace atl::runtime {

// Shares of the busy time: the extra cost of fills over those from the own chiplet.
struct Stall {
  double memory = 0;
  double other_chiplets = 0;
  double sum() const { return memory + other_chiplets; }
};

class Adaptive final : public Approach {
 public:
  explicit Adaptive(std::uint64_t seed = 1) : without_counters_(seed) {}
  std::string name() const override { return "adaptive"; }
  bool needs_intervals() const override { return true; }

 protected:
  Decision decide(const Sample& sample) override;

 private:
  struct Seen {
    double cost = 0;          // when the group came to this spread
    std::uint64_t hold = 0;   // intervals for which it is not tried again
    std::uint64_t until = 0;  // the interval at which that ends
  };
  struct Window {
    int intervals = 0;
    double busy_ns = 0;
    double memory_ns = 0;
    double other_chiplets_ns = 0;
  };

  Decision judge(const Sample& sample, const Stall& stall);
  bool other_phase(int spread, double cost);
  Decision follow(const Sample& sample, const Stall& stall);
  Decision move(const Sample& sample, int target, const std::string& why);
  void begin(int spread);
  void add(const Sample& sample);
  void note(int spread, double cost);
  bool held(int target, double cost) const;

  Switchback without_counters_;
  std::uint64_t now_ = 0;   // intervals
  int asked_ = 0;           // the spread last asked for; 0: none
  int came_from_ = 0;       // where the move to be judged began; 0: none to be judged
  double cost_before_ = 0;  // and what the fills cost there
  int last_spread_ = 0;     // of the last window judged
  double last_cost_ = 0;
  double mean_range_ = 0;  // of cost, from a window to the next of the same spread
  int phase_spread_ = 0;   // where the last change of phase was seen
  std::uint64_t phase_hold_ = 0;
  std::uint64_t next_phase_ = 0;  // the interval from which on one is believed again
  bool settling_ = false;
  Window window_;
  std::map<int, Seen> seen_;  // by spread
};

}  // namespace atl::runtime
