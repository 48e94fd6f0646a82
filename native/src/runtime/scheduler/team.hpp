// A team: all workers of one Runtime and what they share.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <latch>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "atoll/runtime/options.hpp"
#include "atoll/runtime/placed_memory.hpp"
#include "atoll/runtime/places.hpp"
#include "domain.hpp"
#include "governor.hpp"
#include "parking.hpp"
#include "profiler/profiler.hpp"
#include "seating.hpp"
#include "stacks/fiber.hpp"
#include "stacks/stack.hpp"

namespace atl::runtime {

class Worker;

class Team {
 public:
  // Starts the workers and returns when each is on its core. Throws RuntimeFault if the machine
  // cannot provide what the options ask for.
  explicit Team(const RuntimeOptions& options);
  // Waits until no task with a handle is left, then ends the workers. In a child of fork(), where
  // the workers are not, it gives up the memory and returns.
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int size() const { return static_cast<int>(core_of_worker_.size()); }
  Worker& worker(int rank) const { return *workers_[static_cast<std::size_t>(rank)]; }

  // Makes a task ready from a thread that is no worker of this team, or for a domain that the
  // calling worker is not in.
  void inject(Word word);
  // The same for threads that do not keep the team alive, once the task is on its way and may be
  // the last one: those that resume a task of another team's or of none.
  void inject_as_visitor(Word word);

  // The number of a place's domain, shifted as in a task's word. Throws RuntimeFault if the place
  // does not exist.
  Word tag_of(Place place) const;
  Place place_of_group(std::size_t domain) const;

  // Where each worker sits now; a core's index. Consistent among themselves.
  std::vector<int> cores() const;
  // The CPUs of that node's cores; none if it is the only one, or workers are not bound.
  std::vector<int> cpus_of_node(int node) const;
  // Which node each worker sits on.
  NodeMap node_map() const;
  // Spreads the workers: their masks at once, their memory policies and their orders of victims
  // when they next look for work.
  void place(int spread);
  SpreadBounds bounds() const;
  // From now on only cores with one of these CPUs are sat on; holds from the next `place`. Whether
  // these are others than before.
  bool restrict_to(std::span<const int> cpus);
  // Whether workers are bound to their cores.
  bool pins() const { return pins_.load(std::memory_order_relaxed); }
  void set_pin(bool pin);
  // Changes with every `place`.
  std::size_t placement() const { return placement_.load(std::memory_order_acquire); }

  // Whether workers fill their meters.
  bool metered() const { return metered_.load(std::memory_order_relaxed); }
  void meter(bool on) { metered_.store(on, std::memory_order_relaxed); }
  // Each approach its own: with one seed, trials of groups side by side would run in lockstep.
  std::uint64_t next_seed();
  Governor& governor() { return *governor_; }
  Steered& steered() { return *steered_; }

  bool stopping() const { return stopping_.load(std::memory_order_acquire); }
  // Throws RuntimeFault in a child of fork().
  void check_process() const;

  // Tasks made by threads that are no worker of this team.
  std::atomic<std::uint64_t> spawned_outside{0};

  const Places places;
  const std::optional<LentWorkers> lent;
  const bool own_cpus;  // whether there are as many CPUs as workers, so that all can run at once

 private:
  std::atomic<bool> pins_;
  std::vector<int> usable_;  // cores, by the process's mask; under placing_
  std::vector<int> core_of_worker_;
  std::vector<std::vector<int>> shared_;  // CPUs by chiplet, where workers are bound to these
  std::vector<std::vector<int>> bound_;   // what each worker's thread was last bound to

 public:
  Domains domains;
  Parking parking;
  StackPool stacks;

  // Of workers that start: binds the calling thread, `thread` by its number, to the core of `rank`;
  // then makes the worker known to the others, or why there is none: then the team stops.
  void seat(int rank, int thread);
  void announce(Worker& worker);
  void announce_fault(std::exception_ptr fault);
  Profiler& profiler() { return *profiler_; }
  // Nobody may go while another may still look into its deque.
  void await_all_left() { left_.arrive_and_wait(); }
  void await_stop() const { stopping_.wait(false, std::memory_order_acquire); }

  // The queue of what only this worker may run.
  Domain& bound_to(int rank) const {
    return domains[first_worker_domain_ + static_cast<std::size_t>(rank)];
  }

 private:
  void stop() noexcept;
  bool tasks_left() const;
  void update_members();
  const std::vector<int>& seat_cpus(std::size_t rank) const;
  void share_chiplets();
  void bind(std::size_t rank);

  mutable std::mutex placing_;
  std::atomic<std::size_t> placement_{1};
  std::size_t first_worker_domain_ = 0, first_chiplet_domain_ = 0, first_node_domain_ = 0;
  std::vector<int> nodes_;  // of the places, sorted
  std::vector<Worker*> workers_;
  std::vector<int> thread_of_worker_;  // the kernel's ids, under placing_
  std::vector<int> everybody_;         // all ranks
  std::vector<std::thread> threads_;
  std::exception_ptr fault_;  // why a worker could not start
  std::latch seated_;
  std::latch opened_{1};  // everybody is known, and there is a profiler
  std::latch left_;
  std::atomic<bool> stopping_{false};
  std::atomic<int> visitors_{0};  // threads inside inject_as_visitor
  const int number_;              // no other team of the process has it
  std::atomic<bool> metered_{false};
  int process_;  // the pid that made it
  std::atomic<std::uint64_t> seeds_{1};
  std::unique_ptr<Profiler> profiler_;
  std::shared_ptr<Steered> steered_;
  std::unique_ptr<Governor> governor_;
};

}  // namespace atl::runtime
