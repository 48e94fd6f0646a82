// What the meters, counters and resctrl say of a team at one moment, and what was done between two
// such moments: all that the governor knows of the workers.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "atoll/runtime/controller.hpp"
#include "atoll/runtime/options.hpp"
#include "atoll/runtime/profile.hpp"

namespace atl::runtime {

class Team;

// What resctrl says of the team's workers.
struct Occupancy {
  bool is_known = false;  // resctrl counts these workers, and nobody else with them
  std::optional<std::uint64_t> set_bytes = {};  // their working set, if it can be told
};

// Reads the kernel's files, which may take milliseconds. Any thread.
Occupancy read_occupancy(const Team& team);

// What all workers have done so far, sorted by type. The top 16 bits of a type are its domain, so
// the types of a domain lie together. Empty while the team is not metered. O(n log n) in types.
std::vector<TypeWork> read_work(const Team& team);

// What was done between two readings of the same meters; all three are sorted by type. O(n).
std::vector<TypeWork> more_work(std::span<const TypeWork> before, std::span<const TypeWork> now);

// One moment, for all that the governor steers.
class Readings {
 public:
  // `reader`: the user's; empty: the team's own counters.
  Readings(const Team& team, const FillReader& reader, const Occupancy& occupancy);

  const std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now();
  const Occupancy occupancy;
  const std::vector<TypeWork> work;

  // Of this worker, since it began. Read at the first call for each worker, and kept for all groups
  // that it belongs to. Throws what the reader throws.
  const FillCounts& fills(int rank);

 private:
  const Team& team_;
  const FillReader& reader_;
  std::map<int, FillCounts> fills_;
};

// The values of the domain with this tag, and of the workers that may run its tasks, at one moment:
// to subtract from later ones.
class LastReading {
 public:
  LastReading() = default;
  LastReading(Readings& readings, std::uint64_t tag, std::span<const int> workers);

  // What was done since then. The fills are those of workers that were members at both moments.
  void subtract_from(Readings& readings, std::uint64_t tag, std::span<const int> workers,
                     Sample& sample) const;

 private:
  std::vector<TypeWork> work_;
  std::map<int, FillCounts> fills_;
};

}  // namespace atl::runtime
