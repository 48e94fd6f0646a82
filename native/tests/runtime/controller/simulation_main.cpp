// Prints the simulation as CSV: `table` a line per job, approach and start; `series` the spread of
// every interval of those that start in the middle, for a picture.

#include <cstdio>
#include <string_view>

#include "atoll/runtime/controller.hpp"
#include "simulation.hpp"

namespace {

using namespace atl::simulation;

constexpr int kIntervals = 8000;
constexpr std::uint64_t kSeed = 1;
constexpr const char* kApproaches[] = {"adaptive",           "switchback",   "arcas-2025",
                                       "cache-size-centric", "static-local", "static-distributed"};

void print_table() {
  std::puts("job,approach,start,last_spread,moves,slowdown_all,slowdown_last_half");
  for (const Job& job : all_jobs()) {
    for (const char* name : kApproaches) {
      for (const int start : {1, 4, 8}) {
        const auto approach = atl::approach_by_name(name);
        const Trace run = simulate(*approach, Machine(), job, true, kIntervals, start, kSeed);
        std::printf("%s,%s,%d,%d,%d,%.3f,%.3f\n", job.name.c_str(), name, start,
                    run.steps.back().spread, run.moves(), run.slowdown(),
                    run.slowdown(kIntervals / 2));
      }
    }
  }
}

void print_series() {
  std::puts("job,approach,interval,spread,slowdown");
  for (const Job& job : all_jobs()) {
    for (const char* name : kApproaches) {
      const auto approach = atl::approach_by_name(name);
      const Trace run = simulate(*approach, Machine(), job, true, kIntervals, 4, kSeed);
      int interval = 0;
      for (const Step& step : run.steps) {
        std::printf("%s,%s,%d,%d,%.4f\n", job.name.c_str(), name, interval++, step.spread,
                    step.slowdown);
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc == 2 ? argv[1] : "";
  if (what == "table") {
    print_table();
  } else if (what == "series") {
    print_series();
  } else {
    std::fputs("usage: runtime_simulation table|series\n", stderr);
    return 2;
  }
  return 0;
}
