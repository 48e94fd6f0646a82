#include "atoll/runtime/sleep.hpp"

#include <thread>

#include "scheduler/worker.hpp"
#include "wait_on.hpp"

namespace atl::detail {

bool sleep_to(Deadline deadline, const std::stop_token* stop) {
  if (stop == nullptr && runtime::Worker::here() == nullptr) {
    std::this_thread::sleep_until(deadline);
    return true;
  }
  const std::atomic<std::uint32_t> nothing{0};  // an address that nobody wakes before its reuse
  for (;;) {
    if (stop != nullptr && stop->stop_requested()) return false;
    if (std::chrono::steady_clock::now() >= deadline) return true;
    runtime::wait_on(nothing, 0, {.deadline = deadline, .stop = stop});
  }
}

}  // namespace atl::detail
