// DuckDB's tasks on workers of Atoll's runtime.
//
// DuckDB is opened with `external_threads`, so that it starts no thread. The pool has a runtime of
// N workers that are lent (options.hpp): those of rank 1 to N-1 run DuckDB's tasks and sleep in its
// queue between them; rank 0 is the seat of whoever calls. The runtime's governor seats all of them
// and moves them as the steering says, each bound to the chiplet of its seat (ARCAS, section 5.5,
// replaces DuckDB's task scheduling; here its workers are placed, its shared queue stays).
//
// A connection's calls are told by `Call`, which binds the caller and counts the query.
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

namespace atl::duckdb {

const char* name_of(Policy policy);

struct PoolOptions {
  int workers = 1;  // the caller is one of them
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
  std::vector<int> cpus;       // bound to; empty: not bound
  std::optional<int> chiplet;  // of its seat; none: not bound, or to several
};

class Pool {
 public:
  using Owner = Queries::Owner;

  // Starts the workers. RuntimeFault: workers or places that cannot be had.
  Pool(std::unique_ptr<DatabaseHandle> database, const PoolOptions& options);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // Ends the workers and gives the database back; calls of connections that are still open then go
  // on without workers. Returns when that is done, also the second time; but a worker, which cannot
  // wait for itself, returns at once. In a child of fork() it does nothing.
  void stop();
  // In a child of fork(): leaves everything as it is, for ever.
  void give_up() { static_cast<void>(new std::shared_ptr<Inside>(std::move(inside_))); }

  // False in a child of fork().
  bool usable() const;

  // Of the calling thread: a call into DuckDB, from construction to destruction.
  class Call {
   public:
    enum class Kind {
      query,  // begins a query
      fetch,  // goes on with the owner's
      other,  // binds the caller, is no query
    };
    Call(Pool& pool, Kind kind, Owner owner, std::string text = {});
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    void failed() { failed_ = true; }
    // It was no query after all, but the making of a relation, which runs later.
    void is_no_query() { no_query_ = true; }

   private:
    Pool& pool_;
    Kind kind_;
    Owner owner_;
    bool failed_ = false;
    bool no_query_ = false;
  };

  // Whether the owner has a query that is not over.
  bool has_query(Owner owner) const;
  // The owner is gone: its query is over.
  void forget(Owner owner);

  // RuntimeFault: a query runs.
  void set_policy(Policy policy);
  // RuntimeFault: out of bounds, or a query runs.
  void set_spread(int spread);

  Policy policy() const;
  int workers() const { return workers_; }
  int chiplets() const { return places_.chiplets(); }
  int spread() const;
  std::vector<ThreadSeat> threads() const;
  // The latest, oldest first; open ones as far as they are.
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
  std::shared_ptr<Inside> held() const;
  Reading read(const std::shared_ptr<Inside>& inside) const;
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
  std::vector<std::atomic<int>> tids_;  // of workers; 0: not yet known
  std::atomic<bool> counts_fills_{false};

  mutable std::mutex mutex_;  // of what follows, never held while the runtime is called
  Steering steering_;
  Queries queries_;
  Decision wanted_;                   // of the steering, for the governor
  std::vector<Seat> seats_;           // where the workers sit
  std::deque<SpreadChange> spreads_;  // the latest
  int calls_ = 0;                     // inside DuckDB now

  std::mutex setting_;  // one at a time sets the policy or the spread; taken before any other

  mutable std::mutex holding_;      // of what follows
  std::shared_ptr<Inside> inside_;  // null: stopped
  Profile last_profile_;            // of the runtime, when it was stopped
  std::shared_future<void> ended_;  // the workers have, and the database is given back
};

}  // namespace atl::duckdb
