// An event: tasks wait until something has happened or somebody stops them.
#include <atoll/runtime.hpp>
#include <chrono>
#include <cstdio>
#include <vector>

int main() {
  atl::Runtime runtime;
  int seen = 0;
  bool came = true, in_time = true;
  runtime.run([&] {
    std::vector<int> table;
    atl::Event ready;
    auto reader = atl::spawn([&] {
      ready.wait();
      return table.at(2);
    });
    table = {10, 20, 30};
    ready.set();
    seen = reader.join();

    // A wait with a stop token or a time limit returns whether the event was set.
    atl::Event never;
    auto waiting = atl::spawn([&] { return never.wait(atl::this_task::stop_token()); });
    waiting.request_stop();
    came = waiting.join();
    in_time = never.wait_for(std::chrono::milliseconds(1));
  });
  std::printf("saw %d; the other came: %d, in time: %d\n", seen, came, in_time);
  return seen == 30 && !came && !in_time ? 0 : 1;
}
