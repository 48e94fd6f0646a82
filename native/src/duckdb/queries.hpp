// Records each query from its first call until its result was fetched or abandoned.
//
// A query belongs to an owner, the connection or relation that runs it. It may take several calls:
// one starts it, others fetch. Between them the program may do anything. A query ends when its
// owner starts another query or ceases to exist.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "atoll/runtime/profile.hpp"

namespace atl::duckdb {

struct QueryRecord {
  std::string sql;  // the first 200 bytes, cut between characters
  std::string policy;
  int spread = 1;
  std::string reason;
  double started_s = 0;
  double wall_s = 0;
  double cpu_s = 0;
  double caller_cpu_s = 0;
  std::optional<std::uint64_t> working_set_bytes;
  bool alone = true;
  std::optional<FillCounts> fills;
  bool failed = false;
};

// Readings of all clocks at one moment.
struct Reading {
  double now_s = 0;         // since the database was opened
  double others_cpu_s = 0;  // of all other threads of the process: one call, however many workers
  double caller_cpu_s = 0;  // of the calling thread
  int thread = 0;           // the calling thread
};

// The unfinished and the latest finished queries. No I/O; not thread-safe.
class Queries {
 public:
  using Owner = std::uintptr_t;
  struct Open {
    Owner owner = 0;
    QueryRecord record;
    std::string key;          // the whole text
    Reading call, last;       // at the start of its current call, at the end of its latest
    bool running = false;     // a call runs now
    std::uint64_t moves = 0;  // number of workers' moves when it started
    bool one_spread = true;   // no moves from then to the end of its latest call
    // Of all workers, as first and last counted while it ran alone.
    std::optional<FillCounts> first_fills = {}, last_fills = {};
  };

  explicit Queries(std::size_t kept = 4096) : kept_(kept) {}

  // Starts a query. The owner's previous query should have ended (`take`). If several threads share
  // an owner it may not have: then its record is kept and, if it still runs, neither runs alone.
  Open& begin(Owner owner, std::string key, const Reading& at);
  // Continues the owner's query. Returns null if it has none.
  Open* resume(Owner owner, const Reading& at);
  // Ends a call. Returns null if there was none, or another thread made it.
  Open* pause(Owner owner, const Reading& at, bool failed);
  // Ends and removes an open query. nullopt: there is none, or a call of it still runs.
  std::optional<Open> take(Owner owner);
  void keep(const QueryRecord& record);

  Open* find(Owner owner);
  bool has(Owner owner) const { return open_.contains(owner); }
  int running() const { return running_; }
  // Counts fills of all workers for the query.
  static void count_fills(Open& query, const FillCounts& now);
  // Returns the only running query; null if there are none or several.
  Open* alone();
  void moved() { ++moves_; }  // the workers have moved

  const std::deque<QueryRecord>& ended() const { return ended_; }
  std::uint64_t left_out() const { return left_out_; }
  // The unfinished queries with their current state, oldest first.
  std::vector<QueryRecord> open() const;

 private:
  void start(Open& query, const Reading& at);

  std::size_t kept_;
  std::map<Owner, Open> open_;
  std::deque<QueryRecord> ended_;
  std::uint64_t left_out_ = 0;
  std::uint64_t moves_ = 0;
  int running_ = 0;
};

// For two workers, or one at two moments. A source that either lacks is unknown.
FillCounts sum(const FillCounts& a, const FillCounts& b);
FillCounts difference(const FillCounts& before, const FillCounts& now);

// The first `most` bytes of a text, without a partial character (UTF-8).
std::string cut(const std::string& text, std::size_t most);

}  // namespace atl::duckdb
