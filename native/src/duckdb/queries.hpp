// What is known of each query: from its first call until its result was fetched or left.
//
// A query belongs to an owner (the connection or relation that runs it). It may take several calls,
// one that begins it and others that fetch; between them the program does what it likes. It is over
// when its owner begins another one or goes.
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

// What the clocks say at one moment.
struct Reading {
  double now_s = 0;                 // since the database was opened
  double workers_cpu_s = 0;         // of all workers
  double caller_cpu_s = 0;          // of the calling thread
  int thread = 0;                   // the calling thread
  std::optional<FillCounts> fills;  // of all workers
};

// Those that are not over, and the latest that are. Pure but for memory; not thread-safe.
class Queries {
 public:
  using Owner = std::uintptr_t;
  struct Open {
    Owner owner = 0;
    QueryRecord record;
    std::string key;          // the whole text
    Reading first, last;      // at its first call's begin, at its latest call's end
    Reading call;             // at the begin of the call that runs
    bool running = false;     // a call runs now
    std::uint64_t moves = 0;  // of the workers, when it began
    bool one_spread = true;   // they have not moved from then to its latest call's end
  };

  explicit Queries(std::size_t kept = 4096) : kept_(kept) {}

  // Begins a query. The owner's one before should be over (`take`); where threads share an owner it
  // may not be: then what is known of it is kept, and if it still runs neither is alone.
  Open& begin(Owner owner, std::string key, const Reading& at);
  // Goes on with the owner's query; null: it has none.
  Open* resume(Owner owner, const Reading& at);
  // The end of a call. Null: there was none, or it is another thread's.
  Open* pause(Owner owner, const Reading& at, bool failed);
  // The query is over: out of the open ones. None: there is none, or a call of it still runs.
  std::optional<Open> take(Owner owner);
  void keep(const QueryRecord& record);

  Open* find(Owner owner);
  bool has(Owner owner) const { return open_.contains(owner); }
  int running() const { return running_; }
  // The one query that runs; null: none does, or several.
  Open* alone();
  void moved() { ++moves_; }  // the workers sit elsewhere

  const std::deque<QueryRecord>& ended() const { return ended_; }
  std::uint64_t left_out() const { return left_out_; }
  // Those that are open, as far as they are; oldest first.
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

// Of two workers, or of one at two moments; a source that either lacks is not known.
FillCounts sum(const FillCounts& a, const FillCounts& b);
FillCounts difference(const FillCounts& before, const FillCounts& now);

// The first `most` bytes of a text, without a part of a character (UTF-8).
std::string cut(const std::string& text, std::size_t most);

}  // namespace atl::duckdb
