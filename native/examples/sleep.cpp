// Sleeping: the task sleeps; its worker does not.
#include <atoll/runtime.hpp>
#include <chrono>
#include <cstdio>

int main() {
  using namespace std::chrono_literals;
  const auto begin = std::chrono::steady_clock::now();
  atl::Runtime runtime({.workers = 1});
  bool slept_out = true;
  runtime.run([&] {
    // A hundred sleeps at once on one worker.
    atl::Scope scope;
    for (int task = 0; task < 100; ++task) scope.fork([] { atl::sleep_for(50ms); });
    scope.join();

    auto sleeper = atl::spawn([] { return atl::sleep_for(1h, atl::this_task::stop_token()); });
    atl::yield();
    sleeper.request_stop();
    slept_out = sleeper.join();
  });
  const auto took = std::chrono::steady_clock::now() - begin;
  std::printf("%lld ms\n", static_cast<long long>(took / 1ms));
  return took >= 50ms && !slept_out ? 0 : 1;
}
