// call: runs work on a core, a chiplet or a node and returns its result, at once or later.
#include <atoll/runtime.hpp>
#include <cstdio>

int main() {
  atl::Runtime runtime;
  const atl::Places& places = runtime.places();
  int wrong = 0;
  runtime.run([&] {
    // Call every core that has a worker, and wait for each.
    for (const int core : runtime.cores()) {
      wrong += atl::call(atl::on_core(core), [] { return atl::this_task::core(); }) != core;
    }
    // Call every chiplet; the caller continues meanwhile.
    for (int chiplet = 0; chiplet < places.chiplets(); ++chiplet) {
      auto later = atl::spawn(atl::on_chiplet(chiplet), [] { return atl::this_task::core(); });
      const int core = later.join();
      wrong += places.cores[static_cast<std::size_t>(core)].chiplet != chiplet;
    }
    for (const int node : places.nodes()) {
      const int core = atl::call(atl::on_node(node), [] { return atl::this_task::core(); });
      wrong += places.cores[static_cast<std::size_t>(core)].node != node;
    }
  });
  std::printf("%d calls ran in the wrong place\n", wrong);
  return wrong == 0 ? 0 : 1;
}
