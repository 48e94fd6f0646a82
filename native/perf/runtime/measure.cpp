#include "measure.hpp"

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <fstream>
#include <limits>

namespace atl::perf {

double own_cpu_s() {
  timespec spent{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
  return static_cast<double>(spent.tv_sec) + 1e-9 * static_cast<double>(spent.tv_nsec);
}

double peak_resident_bytes() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return 1024.0 * static_cast<double>(used.ru_maxrss);
}

Meter::Meter(int threads)
    : threads_(threads), machine_(machine()), cpu_s_(own_cpu_s()), begin_(Clock::now()) {}

void Meter::report(benchmark::State& state, double items) const {
  const double wall_s = seconds_since(begin_);
  const double cpu_s = own_cpu_s() - cpu_s_;
  const Machine now = machine();
  const double all_s = std::max(now.all_s - machine_.all_s, std::numeric_limits<double>::min());
  const double others_s = std::max(0.0, now.busy_s - machine_.busy_s - cpu_s);
  state.counters["items"] = items;
  state.counters["cpu_share"] = cpu_s / (threads_ * wall_s);
  state.counters["others_share"] = others_s / all_s;
}

// The first line of /proc/stat: cpu user nice system idle iowait irq softirq steal.
Meter::Machine Meter::machine() {
  std::ifstream stat("/proc/stat");
  std::string cpu;
  stat >> cpu;
  const double tick_s = 1.0 / static_cast<double>(sysconf(_SC_CLK_TCK));
  Machine found;
  for (int field = 0; field < 8; ++field) {
    double ticks = 0;
    stat >> ticks;
    const bool is_idle = field == 3 || field == 4;
    found.all_s += ticks * tick_s;
    if (!is_idle) found.busy_s += ticks * tick_s;
  }
  return found;
}

void report_quantiles(benchmark::State& state, std::vector<double>& ns) {
  std::sort(ns.begin(), ns.end());
  const auto at = [&ns](double share) {
    const auto rank = std::ceil(share * static_cast<double>(ns.size())) - 1;
    return ns[static_cast<std::size_t>(std::max(0.0, rank))];
  };
  state.counters["samples"] = static_cast<double>(ns.size());
  state.counters["p50_ns"] = at(0.5);
  state.counters["p99_ns"] = at(0.99);
  state.counters["p999_ns"] = at(0.999);
}

}  // namespace atl::perf
