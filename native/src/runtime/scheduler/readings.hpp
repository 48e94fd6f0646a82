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
  bool is_known = false;  // it counts them alone
  std::optional<std::uint64_t> set_bytes = {};
};

// Reads the kernel's files, which may take long.
Occupancy read_occupancy(const Team& team);

// All meters, by type, and so by domain. Empty while the team is not metered.
std::vector<TypeWork> read_work(const Team& team);

// What was done between two readings of the same meters; both by type.
std::vector<TypeWork> more_work(std::span<const TypeWork> before, std::span<const TypeWork> now);

class Readings {
 public:
  // `reader`: the user's; empty: the team's own counters.
  Readings(const Team& team, const FillReader& reader, const Occupancy& occupancy);

  const std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now();
  const Occupancy occupancy;
  const std::vector<TypeWork> work;

  // Each worker's counters are read once, however many groups it belongs to. May throw what the
  // reader throws.
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
