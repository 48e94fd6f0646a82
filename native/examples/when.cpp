// when_all: the values of several tasks. when_any: the one that is done first.
#include <atoll/runtime.hpp>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

int main() {
  atl::Runtime runtime;
  const bool right = runtime.run([] {
    auto [rows, name] = atl::when_all(atl::spawn([] { return 42; }),
                                      atl::spawn([] { return std::string("orders"); }));

    // The same answer from two replicas. The slow one is asked to stop by its handle's end.
    std::vector<atl::Task<std::string>> replicas;
    replicas.push_back(atl::spawn([] {
      atl::sleep_for(std::chrono::minutes(1), atl::this_task::stop_token());
      return std::string("slow");
    }));
    replicas.push_back(atl::spawn([] { return std::string("fast"); }));
    const std::string first = replicas[atl::when_any(replicas)].join();

    std::printf("%d rows of %s from the %s replica\n", rows, name.c_str(), first.c_str());
    return rows == 42 && first == "fast";
  });
  return right ? 0 : 1;
}
