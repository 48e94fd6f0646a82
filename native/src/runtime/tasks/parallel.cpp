#include "atoll/runtime/parallel.hpp"

#include "scheduler/worker.hpp"

namespace atl::detail {

std::uint32_t workers_of(WorkerHead* worker) {
  return static_cast<std::uint32_t>(static_cast<runtime::Worker*>(worker)->team.size());
}

std::uint32_t rank_of(WorkerHead* worker) {
  return static_cast<std::uint32_t>(static_cast<runtime::Worker*>(worker)->rank);
}

}  // namespace atl::detail
