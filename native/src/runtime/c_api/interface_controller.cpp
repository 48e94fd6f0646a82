// The controller's part of atoll/runtime.h.
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <span>

#include "atoll/runtime.h"
#include "atoll/runtime/controller.hpp"
#include "guard.hpp"

struct atoll_rt_approach {
  std::unique_ptr<atl::Approach> approach;
};

namespace {

using atl::runtime::guarded;

std::optional<std::uint64_t> known(uint64_t count) {
  return count == ATOLL_RT_UNKNOWN ? std::nullopt : std::optional<std::uint64_t>(count);
}

atl::Sample from_c(const atoll_rt_sample& c) {
  atl::Sample sample;
  sample.elapsed_s = c.elapsed_s;
  sample.spread = c.spread;
  sample.min_spread = c.min_spread;
  sample.max_spread = c.max_spread;
  sample.threads = c.threads;
  sample.fills = {known(c.fills_local_chiplet), known(c.fills_remote_chiplet),
                  known(c.fills_remote_node), known(c.fills_memory)};
  sample.latency = {c.latency_local_chiplet_ns, c.latency_remote_chiplet_ns,
                    c.latency_remote_node_ns, c.latency_memory_ns};
  sample.working_set_bytes = known(c.working_set_bytes);
  sample.chiplet_l3_bytes = c.chiplet_l3_bytes;
  for (const atoll_rt_type_work& work : std::span(c.work, c.work_count)) {
    sample.work.push_back({static_cast<std::uintptr_t>(work.type), work.units, work.busy_s});
  }
  return sample;
}

}  // namespace

int atoll_rt_approach_create(const char* name, uint64_t seed, atoll_rt_approach** approach) {
  return guarded([&] {
    *approach =
        std::make_unique<atoll_rt_approach>(atoll_rt_approach{atl::approach_by_name(name, seed)})
            .release();
  });
}

void atoll_rt_approach_free(atoll_rt_approach* approach) { delete approach; }

void atoll_rt_sample_init(atoll_rt_sample* sample) {
  const atl::Sample fresh;  // so that the defaults are those of controller.hpp
  *sample = {};
  sample->spread = fresh.spread;
  sample->min_spread = fresh.min_spread;
  sample->max_spread = fresh.max_spread;
  sample->threads = fresh.threads;
  sample->fills_local_chiplet = ATOLL_RT_UNKNOWN;
  sample->fills_remote_chiplet = ATOLL_RT_UNKNOWN;
  sample->fills_remote_node = ATOLL_RT_UNKNOWN;
  sample->fills_memory = ATOLL_RT_UNKNOWN;
  sample->latency_local_chiplet_ns = fresh.latency.local_chiplet_ns;
  sample->latency_remote_chiplet_ns = fresh.latency.remote_chiplet_ns;
  sample->latency_remote_node_ns = fresh.latency.remote_node_ns;
  sample->latency_memory_ns = fresh.latency.memory_ns;
  sample->working_set_bytes = ATOLL_RT_UNKNOWN;
  sample->chiplet_l3_bytes = fresh.chiplet_l3_bytes;
}

int atoll_rt_approach_step(atoll_rt_approach* approach, const atoll_rt_sample* sample, int* spread,
                           char* reason, size_t reason_capacity) {
  return guarded([&] {
    const atl::Decision decision = approach->approach->step(from_c(*sample));
    *spread = decision.spread;
    if (reason != nullptr && reason_capacity > 0) {
      const std::size_t length = std::min(decision.reason.size(), reason_capacity - 1);
      std::memcpy(reason, decision.reason.data(), length);
      reason[length] = '\0';
    }
  });
}
