// Runs DuckDB's tasks on workers of Atoll's runtime.
//
// DuckDB is opened with `external_threads`, so that it starts no threads. The pool has a runtime of
// N lent workers (options.hpp): those of rank 1 to N-1 run DuckDB's tasks and sleep in its queue in
// between; rank 0 is the seat of the calling thread. The runtime's governor seats and moves all of
// them as the steering decides, each bound to the chiplet of its seat. (ARCAS, section 5.5,
// replaces DuckDB's task scheduling. Here its workers are placed and its shared queue stays.)
//
// Each call of a connection is a `Call`, which binds the caller and counts the query. It makes the
// same few system calls however many workers there are, unless the workers move: the clocks of the
// process and of the caller, and the caller's mask.
//
// Thread-safe. After fork() the child may call `usable` and `give_up`, nothing else.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "atoll/runtime/runtime.hpp"
#include "callers.hpp"
#include "database.hpp"
#include "queries.hpp"
#include "steering.hpp"

namespace atl::runtime {
class Profiler;
}

namespace atl::duckdb {

const char* name_of(Policy policy);

struct PoolOptions {
  int workers = 1;  // including the caller
  Policy policy = Policy::adaptive;
  Places places;
};

struct SpreadChange {
  double t_s = 0;  // since the database was opened
  int spread = 1;
  std::string reason;
};

struct ThreadSeat {
  int tid = 0;
  int rank = 0;
  bool caller = false;
  std::vector<int> cpus;       // the CPUs it is bound to; empty: not bound
  std::optional<int> chiplet;  // of its seat; nullopt: not bound, or bound to several
};

class Pool {
 public:
  using Owner = Queries::Owner;

  // Starts the workers. Throws RuntimeFault if the workers or places are not available.
  Pool(std::unique_ptr<DatabaseHandle> database, const PoolOptions& options);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // Ends the workers and releases the database. Calls of connections that are still open continue
  // without workers. Returns when that is done, even the second time. A worker cannot wait for
  // itself, so for a worker it returns at once. In a child of fork() it does nothing.
  void stop();
  // In a child of fork(): abandons the pool without cleaning up.
  void give_up() { static_cast<void>(new std::shared_ptr<Inside>(std::move(inside_))); }

  // False in a child of fork().
  bool usable() const;

  // A call into DuckDB by the calling thread, from construction to destruction.
  class Call {
   public:
    enum class Kind {
      query,  // begins a query
      fetch,  // continues the owner's query
      other,  // binds the caller; is not a query
    };
    Call(Pool& pool, Kind kind, Owner owner, std::string text = {});
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    void failed() { failed_ = true; }
    // Marks the call as the creation of a relation, which runs later, and not a query.
    void is_no_query() { no_query_ = true; }

   private:
    Pool& pool_;
    Kind kind_;
    Owner owner_;
    bool failed_ = false;
    bool no_query_ = false;
  };

  // Whether the owner has an unfinished query.
  bool has_query(Owner owner) const;
  // Ends the query of an owner that no longer exists.
  void forget(Owner owner);

  // Throws RuntimeFault while a query runs.
  void set_policy(Policy policy);
  // Throws RuntimeFault for a spread out of bounds, or while a query runs.
  void set_spread(int spread);

  Policy policy() const;
  int workers() const { return workers_; }
  int chiplets() const { return places_.chiplets(); }
  int spread() const;
  std::vector<ThreadSeat> threads() const;
  // The latest queries, oldest first, including the state of unfinished ones.
  std::vector<QueryRecord> queries() const;
  std::uint64_t queries_left_out() const;
  std::vector<SpreadChange> spreads() const;
  Profile runtime_profile() const;

 private:
  class Steered;  // the steering as an approach of the runtime
  struct Inside {
    std::unique_ptr<DatabaseHandle> database;  // outlives the workers
    std::unique_ptr<Runtime> runtime;
  };

  void begin(Call::Kind kind, Owner owner, std::string text);
  void end(Call::Kind kind, Owner owner, bool failed, bool no_query);
  void enter();
  void leave() noexcept;
  void give_up_call(Owner owner) noexcept;
  std::shared_ptr<Inside> held() const;
  Reading read() const;
  void look_for_counters();
  FillCounts fills() const;
  void finish(Owner owner);
  Bounds bounds(const std::shared_ptr<Inside>& inside) const;
  void steer(Decision decision);
  void want_quiet(const char* what) const;
  void look_at_working_set(DatabaseHandle& database, Owner owner, const std::string& key);
  void work(const DatabaseHandle& database, int rank);
  bool busy(DatabaseHandle& database);
  void placed(std::span<const Seat> seats);
  void seat_callers();
  Decision decide(const Sample& sample);

  const Places places_;
  const int workers_;
  const std::chrono::steady_clock::time_point opened_;
  const int process_;
  Callers callers_;
  std::vector<std::atomic<int>> tids_;           // of workers; 0: not yet known
  const runtime::Profiler* profiler_ = nullptr;  // of the runtime, for the governor
  std::atomic<bool> counts_fills_{false};

  mutable std::mutex mutex_;  // guards the following; never held during a call of the runtime
  Steering steering_;
  Queries queries_;
  Decision wanted_;                   // of the steering, for the governor
  std::vector<Seat> seats_;           // where the workers sit
  std::deque<SpreadChange> spreads_;  // the latest ones
  int calls_ = 0;                     // calls that are inside DuckDB now

  std::mutex setting_;  // serializes set_policy and set_spread; locked before the others

  mutable std::mutex holding_;      // guards the following
  std::shared_ptr<Inside> inside_;  // null: stopped
  Profile last_profile_;            // of the runtime when it stopped
  std::shared_future<void> ended_;  // ready when workers have ended and the database is released
};

}  // namespace atl::duckdb
