// Very many suspended tasks: each keeps a stack, and what a stack costs is what it has touched.
#include <atoll/runtime.hpp>
#include <atomic>
#include <cstdio>

int main() {
  // 16 KiB is the least. `slab` spares the guards where the kernel makes them dear.
  atl::Runtime runtime({.stacks = {.kind = atl::StackOptions::Kind::slab, .bytes = 16 << 10}});
  constexpr int kTasks = 20'000;
  std::atomic<int> waiting{0};
  runtime.run([&] {
    atl::Scope scope;
    for (int task = 0; task < kTasks; ++task) {
      scope.fork([&] {
        ++waiting;
        while (waiting < kTasks) atl::yield();  // so all are alive at a time
      });
    }
    scope.join();
  });
  std::printf("%d tasks were suspended at a time\n", waiting.load());
  return waiting == kTasks ? 0 : 1;
}
