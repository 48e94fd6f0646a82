// Very many suspended tasks: each keeps a stack, which costs the memory that it has touched.
#include <atoll/runtime.hpp>
#include <atomic>
#include <cstdio>

int main() {
  // 16 KiB is the minimum. `slab` omits guards, which are expensive in some kernels.
  atl::Runtime runtime({.stacks = {.kind = atl::StackOptions::Kind::slab, .bytes = 16 << 10}});
  constexpr int kTasks = 20'000;
  std::atomic<int> waiting{0};
  runtime.run([&] {
    atl::Scope scope;
    for (int task = 0; task < kTasks; ++task) {
      scope.fork([&] {
        ++waiting;
        while (waiting < kTasks) atl::yield();  // so that all are alive at once
      });
    }
    scope.join();
  });
  std::printf("%d tasks were suspended at once\n", waiting.load());
  return waiting == kTasks ? 0 : 1;
}
