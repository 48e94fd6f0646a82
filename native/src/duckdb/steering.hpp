// Over how many chiplets DuckDB's workers should be spread, query by query. Pure: no clock, no
// thread, no I/O.
//
// All tasks of a DuckDB database sit in one queue, so a query's place is where the workers sit
// while it runs. Each query text has a record: the working set seen so far, and an approach of its
// own (`adaptive`, controller.hpp). The first run of a text is spread as wide as can be, and shows
// what memory it needs; the next run begins on the fewest chiplets whose L3 holds that (peak memory
// against L3: Fogli et al., OLAP on chiplets, table 2). From then on the approach corrects it: from
// run to run by work per busy second where there are no counters, by fills where there are.
//
// From run to run spreads are halved and doubled: on many chiplets one more or less changes too
// little to be told from noise within the runs that a query has (a sharing query that is 20 %
// slower on 8 chiplets than on 1 gains 0.3 % from 8 to 7, and 2 % from 8 to 4). Fills tell the
// direction, so with counters it is one chiplet at a time.
//
// What it promises
//  - Whatever an approach answers, a spread lies between the least and the most that are given.
//  - What was learned of a text holds for the bounds and the size of the working set that it was
//    learned with: where one of them changes (the set by more than a factor of 2), the text begins
//    anew at what its working set says.
//  - Memory: at most `capacity` records of some 2 KiB each, however long the texts are.
//  - A call costs O(length of the text), and what a step of the approach costs.
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

// What the workers' places allow.
struct Bounds {
  int least = 1;  // chiplets that hold the workers
  int most = 1;   // at least `least`
  int threads = 1;
  std::uint64_t chiplet_l3_bytes = 0;  // 0: not known
  bool operator==(const Bounds&) const = default;
};

// One whole run of a query.
struct Run {
  double wall_s = 0;
  double busy_s = 0;                                    // CPU time of all that worked for it
  std::optional<std::uint64_t> working_set_bytes = {};  // the most seen; none: not looked at
  Fills fills = {};
  FillLatency latency = {};
  // It ran with no other beside it, at one spread from beginning to end, and succeeded: only then
  // it says something about the spread.
  bool comparable = false;
};

// How large the working set of a text is, as far as looks at it tell.
//
// The largest look counts: one that was cut short, or came too late, sees too little. It shrinks
// again where several looks in a row, all at comparable runs, saw less than half: then to the
// largest of these. Two looks suffice the first time, twice as many each time after, so that a text
// whose size changes from run to run (a prepared statement) settles at its largest.
class WorkingSet {
 public:
  void add(std::uint64_t bytes, bool comparable);
  std::optional<std::uint64_t> bytes() const { return bytes_; }
  // The last look saw less than half.
  bool in_doubt() const { return smaller_looks_ > 0; }

 private:
  std::optional<std::uint64_t> bytes_;
  int patience_ = 2;                // looks that make it shrink
  int smaller_looks_ = 0;           // in a row
  std::uint64_t smaller_most_ = 0;  // the largest of them
};

// Wanted spreads of one database. Not thread-safe.
class Steering {
 public:
  using MakeApproach = std::function<std::unique_ptr<Approach>(std::uint64_t seed)>;
  // At most `capacity` texts (and at least one) are remembered; the one that was unused longest is
  // forgotten first. `make`: called with another seed for each; its answer is never null.
  explicit Steering(Policy policy, MakeApproach make, std::size_t capacity = 1024);

  // Forgets a spread set by hand; what was learned of queries stays.
  void set_policy(Policy policy);
  Policy policy() const { return policy_; }
  // Until the next `set_policy`. The caller has checked the bounds.
  void set_by_hand(int spread);

  // The spread that a query should begin at. `now` is the present one.
  Decision begin(std::string_view key, int now, const Bounds& bounds);
  // Whether its working set should be looked at while it runs, as looking costs time: at runs 0, 1,
  // 2, 4, 8, ... and at least every 64th, and after a look that saw much less than was known.
  bool wants_working_set(std::string_view key) const;
  // What began ran nothing: it made a relation, which runs under a text of its own. Unless the text
  // has run, workers stay where they are for it from now on.
  void ran_nothing(std::string_view key);
  // One interval of a query that runs alone. What it should be at: as `begin` said, until fills by
  // source say otherwise. A run with such intervals teaches nothing more at its end but the working
  // set.
  Decision during(std::string_view key, const Sample& sample);
  // A run is over. `spread`: at which it ran. It teaches something about the spread if it is
  // comparable, ran where `begin` had wanted it, and took a time above 0.
  void end(std::string_view key, int spread, const Run& run, const Bounds& bounds);

 private:
  struct Known {
    std::string key = {};
    std::unique_ptr<Approach> approach = {};  // made when it is first asked
    WorkingSet working_set = {};
    std::optional<std::uint64_t> begun_with = {};  // the working set when it last began anew
    std::optional<Bounds> bounds = {};             // and the bounds; none: it never has
    Decision wanted = {};                          // for the next run
    std::vector<int> rungs = {};  // the spreads compared from run to run, ascending
    std::uint64_t runs = 0;
    bool asked_during = false;  // the run now under way
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
