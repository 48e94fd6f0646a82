// Where the workers of a team sit: the core of each, and the CPUs that its thread is bound to.
#pragma once

#include <atomic>
#include <mutex>
#include <span>
#include <vector>

#include "atoll/runtime/options.hpp"
#include "atoll/runtime/placed_memory.hpp"
#include "atoll/runtime/places.hpp"
#include "seating.hpp"

namespace atl::runtime {

// Any thread may call any function.
class Seats {
 public:
  // Workers that `share_chiplets` are bound to the CPUs of their
  // chiplet, others to their core's.
  Seats(Places places, int workers, bool pin, bool share_chiplets);

  // The others of these vectors may be replaced meanwhile.
  int size() const { return static_cast<int>(thread_of_worker_.size()); }

  // Binds `thread`, by its number, to the seat of `rank`: for workers that start.
  void sit(int rank, int thread);
  // Moves all workers to new seats and binds their threads at once; without memory, only some.
  // `approach` may map the workers in its own way (Approach::map).
  void place(int spread, const Approach& approach);
  SpreadBounds bounds() const;  // O(1)
  // From now on workers sit only on cores with one of these CPUs; takes effect with the next
  // `place`. Returns whether these cores differ from those before; without memory, it changes
  // nothing.
  bool restrict_to(std::span<const int> cpus);
  // Whether workers are bound to their seats.
  bool pins() const { return pins_.load(std::memory_order_relaxed); }
  void set_pin(bool pin);

  // The worker whose seat is this CPU, the last of several; -1: none, or workers are not bound.
  int bound_to(int cpu) const;

  // The worker that sits on this core, an index of places.cores, the first of several; -1: none.
  int worker_on(int core) const;

  // The core of each worker, an index of places.cores.
  std::vector<int> cores() const;
  // One CPU of each chiplet on which a worker sits.
  std::vector<int> cpus_of_chiplets() const;
  // By rank.
  std::vector<Seat> seats() const;
  // The CPUs of the core's node. Empty if there is only one node, or if workers are not bound.
  std::span<const int> cpus_near(int core) const;
  // The node of each worker's memory, for the runtime with this number.
  NodeMap node_map(int runtime) const;

  const Places places;
  const std::vector<int> nodes;  // of the places, sorted

 private:
  const std::vector<int>& cpus_of(std::size_t rank) const;
  std::vector<std::vector<int>> by_chiplet(std::span<const int> cores) const;
  void bind(std::size_t rank);
  void note_seats();

  std::vector<int> memory_nodes_;                // where the memory of each of `nodes` lies
  std::vector<std::vector<int>> cpus_of_nodes_;  // in the order of `nodes`
  mutable std::mutex mutex_;
  std::atomic<bool> pins_;
  std::vector<int> usable_;  // cores with a CPU that the process may use
  SpreadBounds bounds_;      // of the workers on these
  std::vector<int> core_of_worker_;
  std::vector<int> thread_of_worker_;     // the kernel's numbers
  std::vector<std::vector<int>> bound_;   // what each worker's thread was last bound to
  std::vector<std::vector<int>> shared_;  // CPUs by chiplet, if workers are bound to these
  std::vector<std::atomic<int>> bound_to_cpu_;
  std::vector<std::atomic<int>> on_core_;  // for worker_on
};

}  // namespace atl::runtime
