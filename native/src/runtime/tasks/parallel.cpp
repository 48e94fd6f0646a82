#include "atoll/runtime/parallel.hpp"

#include <string>

#include "scheduler/worker.hpp"

namespace atl::detail {

using runtime::Worker;

std::uint32_t workers_of(WorkerHead* head) {
  const auto& worker = *static_cast<Worker*>(head);
  const int size = worker.tag == 0 ? worker.team.size() : worker.team.domains.of(worker.tag).size();
  return static_cast<std::uint32_t>(size);
}

std::uint32_t rank_of(WorkerHead* head) {
  const auto& worker = *static_cast<Worker*>(head);
  return static_cast<std::uint32_t>(
      worker.tag == 0 ? worker.rank : worker.team.domains.of(worker.tag).rank_of(worker.rank));
}

void fault_negative_grain(long long grain) {
  throw RuntimeFault("the grain of a loop is " + std::to_string(grain) +
                     ": give 1 or more, or 0 for the default");
}

}  // namespace atl::detail
