#include <algorithm>
#include <memory>
#include <new>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "atoll/runtime.h"
#include "atoll/runtime/mapping.hpp"
#include "atoll/runtime/places.hpp"
#include "atoll/runtime/victims.hpp"
#include "guard.hpp"
#include "places_handle.hpp"

namespace atl::runtime {
namespace {

// Small, because a library that is loaded later finds little room for thread-locals.
thread_local std::string message;

template <typename Make>
int make_places(atoll_rt_places** out, Make make) {
  return guarded([&] { *out = std::make_unique<atoll_rt_places>(make()).release(); });
}

const Core& core_of(const atoll_rt_places* places, int core) {
  const std::vector<Core>& cores = places->places.cores;
  if (core < 0 || core >= static_cast<int>(cores.size())) {
    throw RuntimeFault("there is no core " + std::to_string(core) + "; there are 0 to " +
                       std::to_string(cores.size() - 1));
  }
  return cores[static_cast<std::size_t>(core)];
}

static_assert(static_cast<int>(Distance::chiplet) == ATOLL_RT_CHIPLET);
static_assert(static_cast<int>(Distance::near) == ATOLL_RT_NEAR);
static_assert(static_cast<int>(Distance::node) == ATOLL_RT_NODE);
static_assert(static_cast<int>(Distance::elsewhere) == ATOLL_RT_ELSEWHERE);

}  // namespace

// Not inline: the caller may have changed threads since it began.
[[gnu::noinline]] void set_message(const char* text) noexcept {
  try {
    message = text;
  } catch (const std::bad_alloc&) {
    message = "no memory";  // short enough to need none
  }
}

}  // namespace atl::runtime

using namespace atl::runtime;

const char* atoll_rt_message(void) { return message.c_str(); }

int atoll_rt_places_from_machine(const char* json, size_t bytes, atoll_rt_places** places) {
  return make_places(places, [&] {
    return atoll_rt_places{atl::places_from_machine(std::string_view(json, bytes))};
  });
}

int atoll_rt_places_here(atoll_rt_places** places) {
  return make_places(places, [] { return atoll_rt_places{atl::places_here()}; });
}

int atoll_rt_places_synthetic(const char* text, const int* cpus, size_t cpu_count,
                              atoll_rt_places** places) {
  return make_places(places, [&] {
    const std::span<const int> real(cpus, cpu_count);
    return atoll_rt_places{atl::synthetic_places(text, std::vector<int>(real.begin(), real.end()))};
  });
}

int atoll_rt_places_with_profile(const atoll_rt_places* from, const char* json, size_t bytes,
                                 atoll_rt_places** places) {
  return make_places(places, [&] {
    return atoll_rt_places{atl::places_with_profile(from->places, std::string_view(json, bytes))};
  });
}

int atoll_rt_places_restrict_to_cpus(const atoll_rt_places* from, const int* cpus, size_t cpu_count,
                                     atoll_rt_places** places) {
  return make_places(places, [&] {
    return atoll_rt_places{atl::restrict_to_cpus(from->places, std::span(cpus, cpu_count))};
  });
}

void atoll_rt_places_free(atoll_rt_places* places) { delete places; }

int atoll_rt_places_counts(const atoll_rt_places* places, atoll_rt_counts* counts) {
  return guarded([&] {
    const atl::Places& all = places->places;
    *counts = {static_cast<int>(all.cores.size()), all.chiplets(),
               static_cast<int>(all.nodes().size()), all.cores.back().package + 1};
  });
}

int atoll_rt_core_at(const atoll_rt_places* places, int core, atoll_rt_core* found) {
  return guarded([&] {
    const atl::Core& one = core_of(places, core);
    *found = {one.chiplet, one.node, one.package, one.cpus.size()};
  });
}

int atoll_rt_core_cpus(const atoll_rt_places* places, int core, int* cpus, size_t capacity,
                       size_t* count) {
  return guarded([&] {
    const atl::Core& one = core_of(places, core);
    *count = one.cpus.size();
    if (capacity < one.cpus.size()) {
      const std::string why = "core " + std::to_string(core) + " has " +
                              std::to_string(one.cpus.size()) + " CPUs, but the buffer is for " +
                              std::to_string(capacity);
      set_message(why.c_str());
      return ERANGE;
    }
    std::ranges::copy(one.cpus, cpus);
    return 0;
  });
}

int atoll_rt_chiplet_level(const atoll_rt_places* places, int from, int to, int* level) {
  return guarded([&] {
    const int chiplets = places->places.chiplets();
    if (from < 0 || to < 0 || from >= chiplets || to >= chiplets) {
      throw atl::RuntimeFault("chiplets are 0 to " + std::to_string(chiplets - 1));
    }
    *level =
        places->places.chiplet_levels[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
  });
}

int atoll_rt_spread_cores(const atoll_rt_places* places, int threads, int spread, int* cores) {
  return guarded(
      [&] { std::ranges::copy(atl::spread_cores(places->places, threads, spread), cores); });
}

int atoll_rt_min_spread(const atoll_rt_places* places, int threads, int* spread) {
  return guarded([&] { *spread = atl::min_spread(places->places, threads); });
}

int atoll_rt_victims(const atoll_rt_places* places, const int* core_of_worker, size_t workers,
                     int thief, int* victims, atoll_rt_ring* rings, size_t* ring_count) {
  return guarded([&] {
    const atl::VictimOrder order =
        atl::victims(places->places, std::span(core_of_worker, workers), thief);
    std::ranges::copy(order.workers, victims);
    std::ranges::transform(order.rings, rings, [](const atl::VictimRing& ring) {
      return atoll_rt_ring{static_cast<int>(ring.distance), ring.begin, ring.end};
    });
    *ring_count = order.rings.size();
    return 0;
  });
}
