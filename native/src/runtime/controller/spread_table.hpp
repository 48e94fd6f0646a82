// Remembers by name which spread is best: over the runs of a query text, or over groups with one
// name. Pure: no clock, no thread, no I/O.
//
// Each name has a record: the working set seen so far, and an approach of its own (controller.hpp).
// Unless the caller knows better, the first run of a name is spread as widely as possible and shows
// how much memory it needs. The next run starts on the fewest chiplets whose L3 holds that (peak
// memory against L3: Fogli et al., OLAP on chiplets, table 2). From then on the approach corrects
// the spread: within a run, by its intervals; else from run to run by work per busy second.
//
// Without fills the spread is halved or doubled. On many chiplets a difference of one is too small
// to be separated from noise within the runs of a query (a sharing query that is 20 % slower on 8
// chiplets than on 1 gains 0.3 % from 8 to 7, and 2 % from 8 to 4). Fills show the direction, so
// with counters the spread changes by one chiplet at a time.
//
// Guarantees
//  - Whatever an approach answers, a spread lies between the given least and most.
//  - What was learned about a name applies to the bounds and working set size with which it was
//    learned. If one of them changes (the size by more than a factor of 2), the name starts again
//    from the spread for its working set.
//  - Memory: at most `capacity` records of about 2 KiB each, however long the names are.
//  - A call costs O(length of the name), plus a step of the approach.
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

namespace atl::runtime {

// The limits of a run's place.
struct RunBounds {
  int least = 1;  // the fewest chiplets with room for the threads
  int most = 1;   // at least `least`
  int threads = 1;
  std::uint64_t chiplet_l3_bytes = 0;  // 0: unknown
  bool operator==(const RunBounds&) const = default;
};
// The bounds that a sample has.
RunBounds bounds_of(const Sample& sample);

// One whole run of a name.
struct Run {
  double wall_s = 0;
  double busy_s = 0;                                    // CPU time of all its threads
  std::optional<std::uint64_t> working_set_bytes = {};  // the largest seen; nullopt: not measured
  Fills fills = {};
  FillLatency latency = {};
  // It ran alone, at one spread from start to end, and succeeded. Only such a run gives evidence
  // about the spread.
  bool comparable = false;
  bool by_table = true;  // at the spread that the table wanted, not at one that was set otherwise
};

// The working set size of a name, as far as measurements show it.
//
// The largest measurement counts, because one that was cut short or came too late sees too little.
// The size shrinks if several measurements in a row, all of comparable runs, were below half of it:
// then to the largest of these. The first time two suffice, then twice as many each time, so that a
// name whose size changes from run to run (a prepared statement) settles at its largest.
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

// Not thread-safe.
class SpreadTable {
 public:
  using MakeApproach =
      std::function<std::unique_ptr<Approach>(std::string_view name, std::uint64_t seed)>;
  // Remembers at most `capacity` names (at least one) and forgets the least recently used first.
  // Calls `make` with a different seed for each name; it must not return null.
  explicit SpreadTable(MakeApproach make, std::size_t capacity = 1024);

  // Returns the spread at which a run should start. While nothing is known, not even a working set,
  // that is `first`, or with 0 as wide as possible.
  Decision begin(std::string_view name, const RunBounds& bounds, int first = 0);
  // Handles one interval of a run that runs alone and returns its spread: that of `begin`, until
  // the counts of intervals change it. A run with such intervals teaches only the working set when
  // it ends.
  Decision during(std::string_view name, const Sample& sample);
  // Handles the end of a run at `spread`. The run gives evidence about the spread if it is
  // comparable, ran at the spread that `begin` wanted, and took more than 0 time.
  void end(std::string_view name, int spread, const Run& run, const RunBounds& bounds);

  // Whether to measure the working set during this run, which costs time: in runs 0, 1, 2, 4, 8,
  // ..., at least every 64th, and after a measurement much smaller than the known size.
  bool wants_working_set(std::string_view name) const;
  // Reports that the name was not run, and whether that is so each time as far as is known.
  void ran_nothing(std::string_view name);
  bool runs_nothing(std::string_view name) const;

 private:
  struct Known {
    std::string key = {};
    std::unique_ptr<Approach> approach = {};  // created when first needed
    WorkingSet working_set = {};
    std::optional<std::uint64_t> begun_with = {};  // the working set at its last restart
    std::optional<RunBounds> bounds = {};          // and the bounds; nullopt: never started
    Decision wanted = {};                          // for the next run
    std::vector<int> rungs = {};  // the spreads compared from run to run, ascending
    int first = 0;                // as given to begin
    std::uint64_t runs = 0;
    bool asked_during = false;  // in the current run
    bool runs_nothing = false;  // as far as is known
  };
  using Order = std::list<Known>;

  Known& known(std::string_view name);
  const Known* find(std::string_view name) const;
  Approach& approach_of(Known& known);
  Decision learn(Known& known, Sample sample);
  static void begin_anew(Known& known, const RunBounds& bounds);

  MakeApproach make_;
  std::size_t capacity_;
  std::uint64_t seeds_ = 0;
  Order order_;                                                  // the latest used first
  std::unordered_map<std::string_view, Order::iterator> known_;  // by the key in the record
};

}  // namespace atl::runtime
