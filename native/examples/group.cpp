// A group: some of the workers, with their own spread, for one query among several.
#include <algorithm>
#include <atoll/runtime.hpp>
#include <atomic>
#include <cstdio>
#include <vector>

int main() {
  // Four chiplets of two cores, on any machine, so that there is a choice.
  const std::vector<int> cpus = atl::places_here().cores.front().cpus;
  atl::Runtime runtime({.places = atl::synthetic_places("chiplet:4 core:2", cpus)});

  atl::Group query(runtime, {.threads = 4, .approach = "static:2"});
  query.set_spread(2);  // takes effect at once; an approach decides at the end of an interval
  const std::vector<int> members = query.workers();
  std::atomic<bool> right = members.size() == 4 && query.spread() == 2;

  // Tasks that its tasks fork and spawn also stay in the group.
  query.run([&] {
    atl::Scope scope;
    for (int part = 0; part < 100; ++part) {
      scope.fork([&] {
        if (!std::ranges::count(members, atl::this_task::worker())) right = false;
      });
    }
    scope.join();
  });
  // One group for each query: the next one of a text begins with what was found out before.
  for (int run = 0; run < 3; ++run) {
    atl::Group next(runtime, {.threads = 4,
                              .spread = 2,
                              .min_chiplets = 2,
                              .max_chiplets = 3,
                              .remember_as = "select count(*) from orders"});
    next.run([] {});
    right = right && next.spread() >= 2 && next.spread() <= 3;
  }
  std::printf("%zu workers on %d chiplets: %s\n", members.size(), query.spread(),
              query.reason().c_str());
  return right ? 0 : 1;
}
