// Decides over how many chiplets to spread DuckDB's workers, query by query. Pure: no clock, no
// thread, no I/O.
//
// All tasks of a DuckDB database are in one queue, so a query runs where the workers sit during the
// query. Each query text has a record: the working set seen so far, and an approach of its own
// (`adaptive`, controller.hpp). The first run of a text is spread as widely as possible and shows
// how much memory it needs. The next run starts on the fewest chiplets whose L3 holds that (peak
// memory against L3: Fogli et al., OLAP on chiplets, table 2). From then on the approach corrects
// the spread: by fills if there are counters, else from run to run by work per busy second.
//
// From run to run the spread is halved or doubled. On many chiplets a difference of one is too
// small to be separated from noise within the runs of a query (a sharing query that is 20 % slower
// on 8 chiplets than on 1 gains 0.3 % from 8 to 7, and 2 % from 8 to 4). Fills show the direction,
// so with counters the spread changes by one chiplet at a time.
//
// Guarantees
//  - Whatever an approach answers, a spread lies between the given least and most.
//  - What was learned about a text applies to the bounds and working set size with which it was
//    learned. If one of them changes (the size by more than a factor of 2), the text starts again
//    from the spread for its working set.
//  - Memory: at most `capacity` records of about 2 KiB each, however long the texts are.
//  - A call costs O(length of the text), plus a step of the approach.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "atoll/runtime/controller.hpp"

namespace atl::duckdb {

enum class Policy { adaptive, local, distributed, none };

// The limits of the workers' places.
struct Bounds {
  int least = 1;  // the fewest chiplets with room for the workers
  int most = 1;   // at least `least`
  int threads = 1;
  std::uint64_t chiplet_l3_bytes = 0;  // 0: unknown
  bool operator==(const Bounds&) const = default;
};

// One whole run of a query.
struct Run {
  double wall_s = 0;
  double busy_s = 0;                                    // CPU time of all its threads
  std::optional<std::uint64_t> working_set_bytes = {};  // the largest seen; nullopt: not measured
  Fills fills = {};
  FillLatency latency = {};
  // It ran alone, at one spread from start to end, and succeeded. Only such a run gives evidence
  // about the spread.
  bool comparable = false;
};

// The working set size of a text, as far as measurements show it.
//
// The largest measurement counts, because one that was cut short or came too late sees too little.
// The size shrinks if several measurements in a row, all of comparable runs, were below half of it:
// then to the largest of these. The first time two suffice, then twice as many each time, so that a
// text whose size changes from run to run (a prepared statement) settles at its largest.
class WorkingSet {
 public:
  void add(std::uint64_t bytes, bool comparable);
  std::optional<std::uint64_t> bytes() const { return bytes_; }
  // The last measurement was below half.
  bool in_doubt() const { return smaller_looks_ > 0; }

 private:
  std::optional<std::uint64_t> bytes_;
  int patience_ = 2;                // measurements needed to shrink
  int smaller_looks_ = 0;           // in a row
  std::uint64_t smaller_most_ = 0;  // the largest of them
};

// The wanted spreads of one database. Not thread-safe.
class Steering {
 public:
  using MakeApproach = std::function<std::unique_ptr<Approach>(std::uint64_t seed)>;
  // Remembers at most `capacity` texts (at least one) and forgets the least recently used first.
  // Calls `make` with a different seed for each text; it must not return null.
  explicit Steering(Policy policy, MakeApproach make, std::size_t capacity = 1024);

  // Forgets a spread set by hand and keeps what was learned about queries.
  void set_policy(Policy policy);
  Policy policy() const { return policy_; }
  // Applies until the next `set_policy`. The caller must have checked the bounds.
  void set_by_hand(int spread);

  // Returns the spread at which a query should start. `now` is the current spread.
  Decision begin(std::string_view key, int now, const Bounds& bounds);
  // Whether to measure the query's working set during this run, which costs time: in runs 0, 1, 2,
  // 4, 8, ..., at least every 64th, and after a measurement much smaller than the known size.
  bool wants_working_set(std::string_view key) const;
  // Reports that the query was not run: it created a relation, which runs under another text.
  // Unless the text has run before, workers stay where they are for it from now on.
  void ran_nothing(std::string_view key);
  // Handles one interval of a query that runs alone and returns its spread: that of `begin`, until
  // fills by source change it. A run with such intervals teaches only the working set when it
  // ends.
  Decision during(std::string_view key, const Sample& sample);
  // Handles the end of a run at `spread`. The run gives evidence about the spread if it is
  // comparable, ran at the spread that `begin` wanted, and took more than 0 time.
  void end(std::string_view key, int spread, const Run& run, const Bounds& bounds);

 private:
  struct Known {
    std::string key = {};
    std::unique_ptr<Approach> approach = {};  // created when first needed
    WorkingSet working_set = {};
    std::optional<std::uint64_t> begun_with = {};  // the working set at its last restart
    std::optional<Bounds> bounds = {};             // and the bounds; nullopt: never started
    Decision wanted = {};                          // for the next run
    std::vector<int> rungs = {};  // the spreads compared from run to run, ascending
    std::uint64_t runs = 0;
    bool asked_during = false;  // in the current run
    bool runs_nothing = false;  // as far as is known
  };
  using Order = std::list<Known>;

  Known& known(std::string_view text);
  Approach& approach_of(Known& text);
  std::optional<Decision> given(int now, const Bounds& bounds) const;
  Decision learn(Known& text, int spread, const Run& run, const Bounds& bounds);
  static void begin_anew(Known& text, const Bounds& bounds);

  Policy policy_;
  std::optional<int> by_hand_;
  MakeApproach make_;
  std::size_t capacity_;
  std::uint64_t seeds_ = 0;
  Order order_;                                                  // the latest used first
  std::unordered_map<std::string_view, Order::iterator> known_;  // by the key in the record
};

}  // namespace atl::duckdb
