#include "seating.hpp"

#include <algorithm>
#include <numeric>

#include "atoll/runtime/mapping.hpp"

namespace atl::runtime {

namespace {

std::vector<int> distinct(std::span<const int> numbers) {
  std::vector<int> sorted(numbers.begin(), numbers.end());
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  return sorted;
}

}  // namespace

std::vector<int> usable_cores(const Places& places, std::span<const int> cpus) {
  std::vector<int> usable;
  for (std::size_t at = 0; at < places.cores.size(); ++at) {
    const std::vector<int>& own = places.cores[at].cpus;
    const bool any = std::any_of(own.begin(), own.end(), [&](int cpu) {
      return std::find(cpus.begin(), cpus.end(), cpu) != cpus.end();
    });
    if (any) usable.push_back(static_cast<int>(at));
  }
  if (usable.empty()) {
    usable.resize(places.cores.size());
    std::iota(usable.begin(), usable.end(), 0);
  }
  return usable;
}

SpreadBounds worker_bounds(const Places& places, std::span<const int> usable, int workers) {
  const Places part = restrict_to_cores(places, usable);
  const int threads = std::min(workers, static_cast<int>(part.cores.size()));
  return {min_spread(part, threads), std::min(part.chiplets(), threads)};
}

std::vector<int> seat_workers(const Places& places, std::span<const int> usable, int workers,
                              int spread) {
  // Their order in the part is that of their indices.
  const std::vector<int> sorted = distinct(usable);
  const Places part = restrict_to_cores(places, sorted);
  const int threads = std::min(workers, static_cast<int>(sorted.size()));
  const SpreadBounds bounds = worker_bounds(places, sorted, workers);
  std::vector<int> cores = spread_cores(part, threads, bounds.clamp(spread));
  for (int& core : cores) core = sorted[static_cast<std::size_t>(core)];
  for (int extra = threads; extra < workers; ++extra) {
    cores.push_back(cores[static_cast<std::size_t>(extra % threads)]);
  }
  return cores;
}

SpreadBounds member_bounds(const Places& places, std::span<const int> core_of_worker, int threads) {
  return worker_bounds(places, distinct(core_of_worker), threads);
}

std::vector<int> mapped(const Places& places, std::span<const int> usable, std::span<const int> now,
                        int spread, const Approach& approach) {
  std::vector<int> cores = approach.map(places, now, spread);
  if (cores.empty()) return cores;
  cores.resize(now.size(), -1);
  for (std::size_t rank = 0; rank < now.size(); ++rank) {
    if (std::ranges::find(usable, cores[rank]) == usable.end()) cores[rank] = now[rank];
  }
  return cores;
}

std::vector<int> member_cores(const Places& places, std::span<const int> core_of_worker,
                              int threads, int spread) {
  return seat_workers(places, distinct(core_of_worker), threads, spread);
}

std::vector<int> members_on(std::span<const int> cores, std::span<const int> core_of_worker) {
  const std::size_t threads = cores.size();
  // Of several workers on a core each is taken once.
  std::vector<int> members;
  std::vector<bool> taken(core_of_worker.size());
  for (const int core : cores) {
    for (std::size_t rank = 0; rank < core_of_worker.size(); ++rank) {
      if (taken[rank] || core_of_worker[rank] != core) continue;
      taken[rank] = true;
      members.push_back(static_cast<int>(rank));
      break;
    }
  }
  // A core may be due more often than it has workers; others stand in.
  for (std::size_t rank = 0; rank < taken.size() && members.size() < threads; ++rank) {
    if (!taken[rank]) members.push_back(static_cast<int>(rank));
  }
  std::sort(members.begin(), members.end());
  return members;
}

}  // namespace atl::runtime
