// yield: lets other tasks of the worker run. Afterwards the task may be on another worker.
#include <atoll/runtime.hpp>
#include <cstdio>
#include <string>

int main() {
  // With one worker nobody else can take one of the two tasks, so they alternate.
  atl::Runtime runtime({.workers = 1});
  const std::string turns = runtime.run([] {
    std::string written;
    const auto write = [&](char name) {
      for (int turn = 0; turn < 3; ++turn) {
        written += name;
        atl::yield();
      }
    };
    atl::Scope scope;
    scope.fork([&] { write('a'); });
    scope.fork([&] { write('b'); });
    scope.join();
    return written;
  });
  std::printf("%s on a runtime of %d\n", turns.c_str(), runtime.workers());
  return turns == "bababa" ? 0 : 1;
}
