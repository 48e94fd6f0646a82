// Cancelling: a task checks its stop token and ends when a stop is requested.
#include <atoll/runtime.hpp>
#include <cstdio>
#include <stop_token>

int main() {
  atl::Runtime runtime;
  const bool stopped = runtime.run([] {
    auto endless = atl::spawn([] {
      const std::stop_token stop = atl::this_task::stop_token();
      long rounds = 0;
      while (!stop.stop_requested()) {
        ++rounds;
        atl::yield();
      }
      return rounds;
    });
    atl::yield();
    endless.request_stop();  // the handle's destructor does this and waits
    return endless.join() >= 0;
  });
  std::printf("stopped: %d\n", stopped);
  return stopped ? 0 : 1;
}
