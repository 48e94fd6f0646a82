// Coroutines as tasks: 100,000 that wait for the same event, each without a stack.
#include <atoll/runtime.hpp>
#include <cstdio>
#include <vector>

atl::Coro<long> rows_of(long part) {
  co_return co_await atl::spawn([part] { return 2 * part; });  // a task, which may use its stack
}

atl::Coro<long> query(atl::Event& loaded, long part) {
  co_await loaded;
  co_return co_await rows_of(part) + 1;
}

int main() {
  constexpr long kQueries = 100'000;
  atl::Runtime runtime;
  atl::Event loaded;
  long sum = 0;
  runtime.run([&] {
    std::vector<atl::Task<long>> queries;
    for (long part = 0; part < kQueries; ++part) {
      queries.push_back(atl::spawn(query(loaded, part)));
    }
    loaded.set();
    for (long rows : atl::when_all(queries)) sum += rows;
  });
  std::printf("%ld\n", sum);
  return sum == kQueries * kQueries ? 0 : 1;
}
