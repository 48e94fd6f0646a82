// A custom approach: decides from the counters how widely to spread a group.
#include <algorithm>
#include <atoll/runtime.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>

// Spreads while there is much work and compacts when there is little.
class ByLoad : public atl::Approach {
 public:
  std::string name() const override { return "by-load"; }

 protected:
  atl::Decision decide(const atl::Sample& sample) override {
    double busy_s = 0;
    for (const atl::TypeWork& work : sample.work) busy_s += work.busy_s;
    const double load = busy_s / (sample.elapsed_s * sample.threads);
    if (load > 0.5) return {sample.spread + 1, "busy"};
    return {sample.spread - 1, "calm"};
  }
};

int main() {
  // Approaches are pure, so they can be tested without a machine.
  ByLoad approach;
  atl::Sample sample{.elapsed_s = 0.1, .spread = 2, .min_spread = 1, .max_spread = 3, .threads = 4};
  sample.work = {{.type = 1, .units = 1000, .busy_s = 0.3}};
  const bool spreads = approach.step(sample).spread == 3;
  sample.spread = 3;
  const bool bounded = approach.step(sample).spread == 3;  // at most max_spread

  // In a runtime it decides on which cores the workers run.
  atl::Runtime runtime({.workers = 1,
                        .own_approach = std::make_shared<ByLoad>(),
                        .interval = std::chrono::milliseconds(10)});
  const int answer = runtime.run([] { return 42; });
  std::printf("spread %d: %s\n", runtime.spread(), runtime.reason().c_str());
  return spreads && bounded && answer == 42 ? 0 : 1;
}
