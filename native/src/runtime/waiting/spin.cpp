#include "spin.hpp"

#include <thread>

#include "scheduler/worker.hpp"

namespace atl::runtime {

int others_running() {
  const Worker* const worker = Worker::here();
  if (worker == nullptr) {
    static const int others = static_cast<int>(std::thread::hardware_concurrency()) - 1;
    return others;
  }
  return worker->team.own_cpus ? worker->team.size() - 1 : 0;
}

}  // namespace atl::runtime
