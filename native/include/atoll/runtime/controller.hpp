// The controller decides how many chiplets a group of tasks uses, once an interval, from the counts
// of that interval.
//
// The idea is that of ARCAS (Fogli et al., "ARCAS: Adaptive Runtime System for Chiplet-Aware
// Scheduling", section 4): approaches are plug-ins over counters. Each task group has its own
// approach object. docs/runtime-controller.md explains each approach and why `adaptive`, not the
// printed algorithm 1, is the default.
//
// What it promises
//  - Pure: no clock, no thread, no I/O, and only seeded randomness. The same samples give the same
//    decisions; time comes from the samples.
//  - Whatever an approach decides, `step` stays within the bounds of the sample.
//  - A step costs O(task types), plus 50,000 additions at the end of a trial block.
//  - Not thread-safe: one caller per object.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "atoll/runtime/export.hpp"

namespace atl {

struct Places;

// Cache lines filled into the cores' own caches (L1 or L2) in an interval, by source. Empty: this
// CPU does not count it.
struct Fills {
  std::optional<std::uint64_t> local_chiplet = {};   // this chiplet's L3 or another L2 under it
  std::optional<std::uint64_t> remote_chiplet = {};  // a cache of another chiplet of the same node
  std::optional<std::uint64_t> remote_node = {};     // a cache of another node
  std::optional<std::uint64_t> memory = {};          // any memory
};

// Time of a fill. The defaults are medians of a dual EPYC 7R13.
struct FillLatency {
  double local_chiplet_ns = 23;
  double remote_chiplet_ns = 108;
  double remote_node_ns = 200;
  double memory_ns = 110;
};

// Tasks of one type (say, one function) that ended in the interval.
struct TypeWork {
  std::uintptr_t type = 0;  // any id that does not change
  double units = 0;         // how much was done, in a unit that is the same for all of the type
  double busy_s = 0;        // CPU time that it took, all workers together
};

// Where a working set comes from: the user, the occupancy of the L3 caches that resctrl reports, or
// the fills. Never from two of them.
enum class WorkingSetSource : std::uint8_t { given, resctrl, fills };
ATOLL_EXPORT std::string_view working_set_source_name(WorkingSetSource source);

// One interval of one task group.
struct Sample {
  double elapsed_s = 0;  // since the group's last sample
  int spread = 1;        // chiplets in use throughout the interval
  int min_spread = 1;    // the fewest chiplets with room for the group's threads
  int max_spread = 1;    // the most that it may use
  int threads = 1;
  Fills fills = {};
  FillLatency latency = {};
  std::optional<std::uint64_t> working_set_bytes = {};
  WorkingSetSource working_set_source = WorkingSetSource::given;  // if it is known
  std::uint64_t chiplet_l3_bytes = 0;                             // 0: not known
  std::vector<TypeWork> work = {};                                // one entry per type
};

struct Decision {
  int spread = 1;           // chiplets wanted from now on
  std::string reason = {};  // for traces and logs; its wording may change
};

// A way to decide. To write your own, derive and override `name` and `decide`. If `decide` throws,
// the spread stays as it is, and the approach is not asked again for this group; if `map` throws
// when a group has to move, spread_cores maps it from then on. `reason` says what was thrown. After
// std::bad_alloc each is tried again after an interval, `map` until it has thrown it 10 times in a
// row. What `begin` throws comes out of the constructor of the group or the runtime; what `map`
// throws, out of that of the runtime and out of the group's set_spread.
class ATOLL_EXPORT Approach {
 public:
  Approach() = default;
  Approach(const Approach&) = delete;
  Approach& operator=(const Approach&) = delete;
  virtual ~Approach();

  virtual std::string name() const = 0;

  // Whether it judges by the counts of whole intervals. Such an approach is not asked in between
  // (Runtime::look).
  virtual bool needs_intervals() const { return false; }
  // Whether it goes by Sample::working_set_bytes. The runtime then measures it if the user gave
  // none: each interval has the latest estimate.
  virtual bool wants_working_set() const { return false; }
  // The cores of threads that sit on the cores `now`, by rank, at a spread: indices of
  // places.cores. A core may be given twice; a thread whose core it may not use stays. The default,
  // an empty list, leaves it to spread_cores (mapping.hpp).
  virtual std::vector<int> map(const Places& places, std::span<const int> now, int spread) const;
  // The spread to begin with, before there are counts; `sample` has the bounds, and as its spread
  // the fewest chiplets, which is the default. O(1).
  virtual int begin(const Sample& sample) const { return sample.spread; }

  // Call it once an interval. It ignores an interval without length and corrects a spread that is
  // out of bounds without calling `decide`.
  Decision step(const Sample& sample);

 protected:
  // Gets only samples with elapsed_s > 0 and 1 <= min_spread <= spread <= max_spread. A spread out
  // of these bounds is moved to the nearer one.
  virtual Decision decide(const Sample& sample) = 0;
};

inline constexpr std::string_view kDefaultApproach = "adaptive";

// `adaptive`, `arcas-2025`, `arcas-2025-printed`, `cache-size-centric`, `location-centric`,
// `static-distributed`, `static-local`, `static:K` (K chiplets), `switchback`. The two of ARCAS
// also take a threshold of fills from other chiplets instead of 300, and after it the milliseconds
// in which they are counted, instead of 100: `arcas-2025:N`, `arcas-2025-printed:N:MS`. Throws
// RuntimeFault for any other name.
// `seed` is for the coin by which `switchback`, and so `adaptive`, orders its trials. Groups that
// run at the same time need different seeds, or their trials keep step and disturb each other.
ATOLL_EXPORT std::unique_ptr<Approach> approach_by_name(std::string_view name,
                                                        std::uint64_t seed = 1);

}  // namespace atl
