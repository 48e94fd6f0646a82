#include "simulation.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace atl::simulation {

namespace {

constexpr double kMiB = 1024.0 * 1024;
constexpr double kColdPart = 0.3;      // of the working set, after a move
constexpr double kBusyPart = 0.9;      // of the threads' time
constexpr double kCountsNoise = 0.03;  // of what the PMU counts, beyond that of the speed

struct Accesses {
  double local = 0;
  double remote = 0;
  double memory = 0;
};

// Of one unit.
Accesses accesses(const Machine& machine, double set_bytes, const TaskType& type, int spread,
                  bool cold) {
  const double others = 1 - 1.0 / spread;
  const double fits = set_bytes <= 0 ? 1 : std::min(1.0, machine.l3_bytes * spread / set_bytes);
  const double warm = fits * (cold ? 1 - kColdPart : 1);
  return {.local = type.shared * (1 - others) + type.own * warm,
          .remote = type.shared * others,
          .memory = type.own * (1 - warm)};
}

double type_ns(const Machine& machine, const TaskType& type, const Accesses& of) {
  const FillLatency& latency = machine.latency;
  return type.compute_ns + (of.local * latency.local_chiplet_ns +
                            of.remote * latency.remote_chiplet_ns + of.memory * latency.memory_ns) /
                               machine.overlap;
}

Job job_of(std::string name, double set_mib, std::vector<TaskType> types) {
  return {.name = std::move(name),
          .phases = {{.intervals = 1, .set_bytes = set_mib * kMiB, .types = std::move(types)}}};
}

}  // namespace

Job sharing_job() {
  return job_of("sharing", 8, {{.share = 1, .compute_ns = 500, .shared = 20, .own = 4}});
}

Job capacity_job() {
  return job_of("capacity", 150, {{.share = 1, .compute_ns = 500, .shared = 0, .own = 20}});
}

Job mixed_job() {
  return job_of("mixed", 128,
                {{.share = 0.5, .compute_ns = 300, .shared = 12, .own = 10},
                 {.share = 0.5, .compute_ns = 900, .shared = 0, .own = 50}});
}

Job indifferent_job() {
  return job_of("indifferent", 8, {{.share = 1, .compute_ns = 1000, .shared = 0, .own = 4}});
}

Job phased_job() {
  Job job = sharing_job();
  job.name = "phased";
  job.phases.push_back(capacity_job().phases.front());
  for (Phase& phase : job.phases) phase.intervals = 2000;
  return job;
}

std::vector<Job> all_jobs() {
  return {sharing_job(), capacity_job(), mixed_job(), indifferent_job(), phased_job()};
}

const Phase& phase_at(const Job& job, int interval) {
  int round = 0;
  for (const Phase& phase : job.phases) round += phase.intervals;
  int left = interval % round;
  for (const Phase& phase : job.phases) {
    if (left < phase.intervals) return phase;
    left -= phase.intervals;
  }
  return job.phases.back();
}

double unit_ns(const Machine& machine, const Phase& phase, int spread) {
  double sum = 0;
  double shares = 0;
  for (const TaskType& type : phase.types) {
    const Accesses of = accesses(machine, phase.set_bytes, type, spread, false);
    sum += type.share * type_ns(machine, type, of);
    shares += type.share;
  }
  return sum / shares;
}

double best_unit_ns(const Machine& machine, const Phase& phase) {
  double best = unit_ns(machine, phase, 1);
  for (int spread = 2; spread <= machine.chiplets; ++spread) {
    best = std::min(best, unit_ns(machine, phase, spread));
  }
  return best;
}

Simulation::Simulation(const Machine& machine, Job job, bool counters, std::uint64_t seed)
    : machine_(machine), job_(std::move(job)), counters_(counters), random_(seed) {}

Sample Simulation::next(int spread) {
  const Phase& phase = phase_at(job_, interval_);
  const bool cold = last_spread_ != 0 && last_spread_ != spread;
  last_spread_ = spread;
  ++interval_;

  mix_.resize(phase.types.size());
  for (double& part : mix_) part += job_.mix_drift * normal();
  const double kept = job_.autocorrelation;
  noise_ = kept * noise_ + std::sqrt(1 - kept * kept) * job_.noise * normal();

  Sample sample{.elapsed_s = machine_.interval_s,
                .spread = spread,
                .min_spread = 1,
                .max_spread = machine_.chiplets,
                .threads = machine_.threads,
                .latency = machine_.latency,
                .chiplet_l3_bytes = static_cast<std::uint64_t>(machine_.l3_bytes)};
  // The number of units of each type, in proportion, that fill the busy time.
  std::vector<double> shares;
  std::vector<Accesses> of;
  double bundle_ns = 0;
  for (std::size_t i = 0; i < phase.types.size(); ++i) {
    const TaskType& type = phase.types[i];
    shares.push_back(type.share * std::exp(mix_[i]));
    of.push_back(accesses(machine_, phase.set_bytes, type, spread, cold));
    bundle_ns += shares[i] * type_ns(machine_, type, of[i]) * std::exp(noise_);
  }
  const double busy_ns = 1e9 * kBusyPart * machine_.threads * machine_.interval_s;
  const double bundles = busy_ns / bundle_ns;
  Accesses sum;
  for (std::size_t i = 0; i < phase.types.size(); ++i) {
    const double units = bundles * shares[i];
    const double unit_ns = type_ns(machine_, phase.types[i], of[i]) * std::exp(noise_);
    sample.work.push_back({.type = i + 1, .units = units, .busy_s = units * unit_ns / 1e9});
    sum.local += units * of[i].local;
    sum.remote += units * of[i].remote;
    sum.memory += units * of[i].memory;
  }
  if (counters_) {
    const auto count = [this](double fills) {
      return static_cast<std::uint64_t>(fills * std::exp(kCountsNoise * normal()));
    };
    sample.fills = {.local_chiplet = count(sum.local),
                    .remote_chiplet = count(sum.remote),
                    .remote_node = 0,
                    .memory = count(sum.memory)};
    sample.working_set_bytes = static_cast<std::uint64_t>(phase.set_bytes);
  }
  return sample;
}

int Trace::moves(std::size_t from) const {
  int count = 0;
  for (std::size_t i = from + 1; i < steps.size(); ++i) {
    if (steps[i].spread != steps[i - 1].spread) ++count;
  }
  return count;
}

double Trace::slowdown(std::size_t from) const {
  double sum = 0;
  for (std::size_t i = from; i < steps.size(); ++i) sum += steps[i].slowdown;
  return sum / static_cast<double>(steps.size() - from);
}

Trace simulate(Approach& approach, const Machine& machine, const Job& job, bool counters,
               int intervals, int start, std::uint64_t seed) {
  Simulation simulation(machine, job, counters, seed);
  Trace run;
  int spread = start;
  for (int interval = 0; interval < intervals; ++interval) {
    const Phase& phase = phase_at(job, interval);
    run.steps.push_back({spread, unit_ns(machine, phase, spread) / best_unit_ns(machine, phase)});
    spread = approach.step(simulation.next(spread)).spread;
  }
  return run;
}

}  // namespace atl::simulation
