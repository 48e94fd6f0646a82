// The first program: creates a runtime and runs work on it.
#include <atoll/runtime.hpp>
#include <cstdio>

int main() {
  atl::Runtime runtime;  // a worker on each core that this process may use
  const int answer = runtime.run([] { return 6 * 7; });
  std::printf("%d, from one of %d workers\n", answer, runtime.workers());
  return answer == 42 ? 0 : 1;
}
