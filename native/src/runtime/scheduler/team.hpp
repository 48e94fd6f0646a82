// A team: all workers of one Runtime and what they share.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <latch>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "atoll/runtime/options.hpp"
#include "chiplet_queues.hpp"
#include "controller/spread_table.hpp"
#include "decided.hpp"
#include "domain.hpp"
#include "far_work.hpp"
#include "governor.hpp"
#include "group_seats.hpp"
#include "parking.hpp"
#include "place_domains.hpp"
#include "profiler/profiler.hpp"
#include "seats.hpp"
#include "stacks/fiber.hpp"
#include "stacks/stack.hpp"
#include "urgent.hpp"

namespace atl::runtime {

class Worker;

class Team {
 public:
  // Starts the workers and returns when each is on its core. Throws RuntimeFault if the machine
  // cannot provide what the options ask for.
  explicit Team(const Decided& all);
  // Waits until no task with a handle is left, then ends the workers. In a child of fork(), which
  // has no workers, it frees the memory and returns.
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int size() const { return seats.size(); }
  Worker& worker(int rank) const { return *workers_[static_cast<std::size_t>(rank)]; }

  // Makes a task ready from a thread that is no worker of this team, or for a domain that the
  // calling worker is not in. The worker that is to wake for it does so with the wave.
  void inject(Word word, Parking::Wave& wave) noexcept;
  void inject(Word word) noexcept {
    Parking::Wave alone(parking);
    inject(word, alone);
  }
  // The same for a task that is to begin before those that are ready.
  void inject_urgent(Word word) noexcept;
  // The same for threads that do not keep the team alive: those that resume a task of another team
  // or of none. Once the task is on its way, it may be the last one, and the team may end.
  void inject_as_visitor(Word word, bool urgent = false) noexcept;
  // Several tasks, from any thread that stays on this worker meanwhile, if it is one: as
  // Worker::make_ready on a worker of the team. The workers that are to wake for them do so
  // together, when this ends.
  class Visit {
   public:
    explicit Visit(Team& to);
    ~Visit();
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;

    void make_ready(Word word) noexcept;
    // Those that are to wake for the tasks until now.
    void let_run() { wave_.let_run(); }

    Team& team;

   private:
    Worker* const own_;  // keeps its team alive; null on other threads, which visitors_ counts
    Parking::Wave wave_;
  };
  // Counts the end of a task, a coroutine, on such a thread.
  void count_ended_as_visitor(Word tag) noexcept;
  // Runs the job, a task whose end is `end`, on the calling thread in the place of a worker that
  // sleeps. Returns when it has ended, or when there is nothing that this thread may run meanwhile.
  // False: it did nothing; no worker sleeps, the one that is bound to this CPU is awake, or the
  // thread is a worker.
  bool run_on_caller(detail::Job* job, const detail::Completion& end) noexcept;

  // Spreads the workers: their masks at once, their memory policies and their orders of victims
  // when they next look for work.
  void place(int spread, const Approach& approach);
  // Whether workers are bound to their seats, at once.
  void set_pin(bool pin);
  std::span<const int> everybody() const { return everybody_; }  // all ranks
  // Changes with every `place`.
  std::size_t placement() const { return placement_.load(std::memory_order_acquire); }
  // Which node each worker sits on.
  NodeMap node_map() const { return seats.node_map(number_); }

  // Whether workers fill their meters.
  bool metered() const { return metered_.load(std::memory_order_relaxed); }
  void meter(bool on) { metered_.store(on, std::memory_order_relaxed); }
  // A seed for each approach: with one seed, trials of groups side by side would run in lockstep.
  std::uint64_t next_seed();
  Governor& governor() { return *governor_; }
  Steered& steered() { return *steered_; }
  Profiler& profiler() const { return *profiler_; }

  bool stopping() const { return stopping_.load(std::memory_order_acquire); }
  // Throws RuntimeFault in a child of fork().
  void check_process() const;

  // Called by a worker that starts: makes it known to the others, or reports why there is none, and
  // then the team stops.
  void announce(Worker& worker);
  void announce_fault(std::exception_ptr fault);
  // No worker may leave while another may still look into its deque.
  void await_all_left() { left_.arrive_and_wait(); }
  void await_stop() const { stopping_.wait(false, std::memory_order_acquire); }

 private:
  // The chiplet on which the caller runs; some chiplet if the places do not have its CPU.
  int chiplet_here() noexcept;
  // For fills that are counted by CPU.
  void note_seats();
  // A worker whose place the caller has taken, or kNobody.
  int borrow_place() noexcept;
  void stop() noexcept;
  bool tasks_left() const;

  const int number_;  // no other team of the process has it

 public:
  const std::optional<LentWorkers> lent;
  const std::vector<std::string> remarks;  // for the profile
  Seats seats;
  const StealCosts steal_costs;
  const bool own_cpus;  // whether there are as many CPUs as workers, so that all can run at once
  Domains domains;
  PlaceDomains place_domains;
  ChipletQueues anywhere;
  Parking parking;
  Urgent urgent;
  // Of groups; with the governor's lock held.
  GroupSeats group_seats;
  SpreadTable remembered;  // by approach, a blank, and the user's name
  StackPool stacks;
  // Tasks made by threads that are no worker of this team. Apart, as what other such calls change,
  // from what workers read for each task.
  alignas(128) std::atomic<std::uint64_t> spawned_outside{0};

 private:
  std::atomic<std::uint64_t> ended_outside_{0};
  std::atomic<int> visitors_{0};        // threads inside an `as_visitor` or run_on_caller
  std::atomic<unsigned> strangers_{0};  // calls of chiplet_here on other CPUs
  alignas(128) std::mutex placing_;     // one thread at a time seats the workers
  std::atomic<std::size_t> placement_{1};
  std::vector<Worker*> workers_;
  std::vector<int> everybody_;             // all ranks
  const std::vector<int> chiplet_of_cpu_;  // -1: none
  std::vector<std::thread> threads_;
  std::mutex fault_mutex_;
  std::exception_ptr fault_;  // why a worker could not start
  std::latch seated_;
  std::latch opened_{1};  // all workers are known, and there is a profiler
  std::latch left_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> metered_{false};
  const std::uint32_t forks_before_;  // of the process that made it
  std::atomic<std::uint64_t> seeds_{1};
  std::unique_ptr<Profiler> profiler_;
  std::unique_ptr<Steered> steered_;
  std::unique_ptr<Governor> governor_;
};

}  // namespace atl::runtime
