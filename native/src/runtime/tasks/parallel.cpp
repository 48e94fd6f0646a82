#include "atoll/runtime/parallel.hpp"

#include <string>
#include <vector>

#include "atoll/runtime/parallel_array.hpp"
#include "atoll/runtime/worker_local.hpp"
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

const void* runtime_of_worker() {
  return &static_cast<Worker*>(worker_or_fault("WorkerLocal"))->team;
}

std::size_t worker_slots() {
  return static_cast<std::size_t>(
      static_cast<Worker*>(worker_or_fault("WorkerLocal"))->team.size());
}

std::size_t worker_slot(const void* runtime) {
  const auto& worker = *static_cast<Worker*>(worker_or_fault("WorkerLocal::lease"));
  if (&worker.team != runtime) {
    throw RuntimeFault("WorkerLocal::lease: the values belong to the workers of another runtime");
  }
  return static_cast<std::size_t>(worker.rank);
}

void fault_leased() {
  throw RuntimeFault(
      "WorkerLocal: a value is still leased: end the leases and join their tasks first");
}

std::vector<int> nodes_of_parts(int parts) {
  const runtime::Seats& seats = static_cast<Worker*>(worker_or_fault("parallel_for"))->team.seats;
  if (seats.size() != parts) {
    throw RuntimeFault("parallel_for: the array has " + std::to_string(parts) +
                       " parts, but this runtime has " + std::to_string(seats.size()) +
                       " workers: partition it by this runtime's node_map()");
  }
  // Not by the node map, which has the nodes of the memory: those of made-up places have none.
  std::vector<int> nodes;
  for (const int core : seats.cores()) {
    nodes.push_back(seats.places.cores[static_cast<std::size_t>(core)].node);
  }
  return nodes;
}

void fault_negative_grain(long long grain) {
  throw RuntimeFault("the grain of a loop is " + std::to_string(grain) +
                     ": give 1 or more, or 0 for the default");
}

}  // namespace atl::detail
