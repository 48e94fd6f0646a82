// A simulated machine with chiplets and jobs: for tests of the controller where no CPU has
// counters. Its figures are a model's and must be labelled 'simulated'.
//
// The model. The threads of a group are spread evenly over k chiplets. A task of a type takes its
// computation and its stalls: each access costs the latency of its line's source, divided by the
// number of misses that a core overlaps.
//  - A line that all threads write was last written on another chiplet with probability 1 - 1/k.
//  - A line of the working set, which the threads divide among them, is in the own L3 with
//    probability min(1, k L3 / set), else in memory.
//  - In the first interval after a move, part of the working set is fetched again.
// Noise is multiplicative, log-normal, of given autocorrelation and seeded.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "atoll/runtime/controller.hpp"

namespace atl::simulation {

struct Machine {
  int chiplets = 8;
  double l3_bytes = 32.0 * 1024 * 1024;
  FillLatency latency = {};
  double overlap = 2;  // misses that a core has under way at once
  int threads = 8;
  double interval_s = 0.1;
};

struct TaskType {
  double share = 1;          // of the units that are done
  double compute_ns = 1000;  // per unit
  double shared = 0;         // accesses per unit to lines that all threads write
  double own = 0;            // accesses per unit to the working set
};

struct Phase {
  int intervals = 1;
  double set_bytes = 0;
  std::vector<TaskType> types = {};
};

struct Job {
  std::string name;
  std::vector<Phase> phases = {};  // in turn, for ever
  double noise = 0.05;             // standard deviation of the logarithm of an interval's speed
  double autocorrelation = 0;
  double mix_drift = 0;  // step of a random walk of the types' shares (their logarithms)
};

// The jobs of the tests and of docs/runtime-controller.md.
Job sharing_job();      // writes shared lines: best on one chiplet
Job capacity_job();     // 150 MiB: best from five chiplets on
Job mixed_job();        // both: best on four
Job indifferent_job();  // computes
Job phased_job();       // shares for 2000 intervals, then has a large working set for 2000
std::vector<Job> all_jobs();

const Phase& phase_at(const Job& job, int interval);
// Expected time of a mean unit, without noise.
double unit_ns(const Machine& machine, const Phase& phase, int spread);
double best_unit_ns(const Machine& machine, const Phase& phase);

class Simulation {
 public:
  Simulation(const Machine& machine, Job job, bool counters, std::uint64_t seed);
  Sample next(int spread);

 private:
  double normal() { return normal_(random_); }
  Machine machine_;
  Job job_;
  bool counters_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  int interval_ = 0;
  int last_spread_ = 0;
  double noise_ = 0;
  std::vector<double> mix_;  // logarithms of what the shares are multiplied by
};

struct Step {
  int spread = 1;
  double slowdown = 1;  // expected time of a unit over that of the best spread
};

struct Trace {
  std::vector<Step> steps;
  int moves(std::size_t from = 0) const;
  double slowdown(std::size_t from = 0) const;  // mean
};

Trace simulate(Approach& approach, const Machine& machine, const Job& job, bool counters,
               int intervals, int start, std::uint64_t seed);

}  // namespace atl::simulation
