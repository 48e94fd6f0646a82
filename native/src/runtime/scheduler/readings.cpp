#include "readings.hpp"

#include <algorithm>

#include "controller/working_set.hpp"
#include "profiler/clock.hpp"
#include "team.hpp"
#include "worker.hpp"

namespace atl::runtime {

namespace {

constexpr const char* kCpus = "/sys/devices/system/cpu";

// The values of a user's reader, in the profiler's form.
FillCounts counts_of(const Fills& fills) {
  FillCounts counts;
  counts.of(FillSource::local_chiplet) = fills.local_chiplet;
  counts.of(FillSource::remote_chiplet) = fills.remote_chiplet;
  counts.of(FillSource::remote_node) = fills.remote_node;
  counts.of(FillSource::memory_local) = fills.memory;
  if (fills.memory) counts.of(FillSource::memory_remote) = 0;
  counts.running_share = 1;
  return counts;
}

// A value that one worker lacks is unknown in the sum, too.
std::optional<std::uint64_t> sum(std::optional<std::uint64_t> a, std::optional<std::uint64_t> b) {
  if (!a || !b) return {};
  return *a + *b;
}

Fills sum(const Fills& a, const Fills& b) {
  return {sum(a.local_chiplet, b.local_chiplet), sum(a.remote_chiplet, b.remote_chiplet),
          sum(a.remote_node, b.remote_node), sum(a.memory, b.memory)};
}

std::span<const TypeWork> of_domain(const std::vector<TypeWork>& work, std::uint64_t tag) {
  if (tag == 0) return work;
  const auto mine = std::ranges::equal_range(work, tag, {}, [](const TypeWork& entry) {
    return static_cast<std::uint64_t>(detail::tag_of(entry.type));
  });
  return {mine.begin(), mine.end()};
}

}  // namespace

// The workers may move meanwhile, by `look`. Their data is still where they were.
Occupancy read_occupancy(const Team& team) {
  const std::vector<L3Profile> l3s = team.profiler().l3_of_workers();
  if (l3s.empty()) return {};
  return {true, working_set_by_occupancy(l3s, l3s_of_cpus(kCpus, team.seats.cpus_of_chiplets()))};
}

std::vector<TypeWork> read_work(const Team& team) {
  std::vector<TypeWork> work;
  if (!team.metered()) return work;
  std::vector<Meter::Sum> sums;
  // All workers: a former member keeps its counts.
  for (int rank = 0; rank < team.size(); ++rank) {
    const Worker& worker = team.worker(rank);
    worker.meter().read(now_ns(), [&] { return worker.counts.inline_forks.read(); }, sums);
  }
  std::ranges::sort(sums, {}, &Meter::Sum::key);
  for (const Meter::Sum& sum : sums) {
    if (work.empty() || work.back().type != sum.key) work.push_back({sum.key, 0, 0});
    work.back().units += static_cast<double>(sum.units);
    work.back().busy_s += static_cast<double>(sum.busy_ns) * 1e-9;
  }
  return work;
}

std::vector<TypeWork> more_work(std::span<const TypeWork> before, std::span<const TypeWork> now) {
  std::vector<TypeWork> more;
  auto old = before.begin();
  for (const TypeWork& entry : now) {
    while (old != before.end() && old->type < entry.type) ++old;
    const bool seen = old != before.end() && old->type == entry.type;
    const double units = entry.units - (seen ? old->units : 0);
    const double busy_s = entry.busy_s - (seen ? old->busy_s : 0);
    // Below 0: a meter has forgotten the type, or could not be read without a job that runs.
    if (units > 0 || busy_s > 0) {
      more.push_back({entry.type, std::max(0.0, units), std::max(0.0, busy_s)});
    }
  }
  return more;
}

Readings::Readings(const Team& team, const FillReader& reader, const Occupancy& known)
    : occupancy(known), work(read_work(team)), team_(team), reader_(reader) {}

const FillCounts& Readings::fills(int rank) {
  const auto found = fills_.find(rank);
  if (found != fills_.end()) return found->second;
  return fills_.emplace(rank, reader_ ? counts_of(reader_(rank)) : team_.profiler().fills(rank))
      .first->second;
}

LastReading::LastReading(Readings& readings, std::uint64_t tag, std::span<const int> workers) {
  const std::span<const TypeWork> work = of_domain(readings.work, tag);
  work_.assign(work.begin(), work.end());
  for (const int rank : workers) fills_.emplace(rank, readings.fills(rank));
}

void LastReading::subtract_from(Readings& readings, std::uint64_t tag, std::span<const int> workers,
                                Sample& sample) const {
  sample.work = more_work(work_, of_domain(readings.work, tag));
  bool first = true;
  for (const int rank : workers) {
    const auto before = fills_.find(rank);
    if (before == fills_.end()) continue;
    const Fills more = controller_fills(before->second, readings.fills(rank));
    sample.fills = first ? more : sum(sample.fills, more);
    first = false;
  }
}

}  // namespace atl::runtime
