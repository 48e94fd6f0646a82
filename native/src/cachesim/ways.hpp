// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
// One set of a cache: its tags, the most recently used first, free ways last.
//
// All is done by who holds the lock of the set's shard, except that the first way is also read
// without it (Caches::access). So a way is written at most once per change, and always atomically.
#pragma once

#include <atomic>
#include <cstdint>

#include "caches.hpp"

namespace atl::cachesim {

inline constexpr Tag kFree = 0xFFFFFFFF;  // no line has it: a line has at most 30 bits

inline Tag way(Tag& tag) { return std::atomic_ref(tag).load(std::memory_order_relaxed); }
inline void set_way(Tag& tag, Tag value) {
  std::atomic_ref(tag).store(value, std::memory_order_relaxed);
}

// The way whose tag is `tag`, with the bits of `ignored` taken for equal; `ways` if none.
inline std::uint32_t find(Tag* set, std::uint32_t ways, Tag tag, Tag ignored = 0) {
  for (std::uint32_t at = 0; at < ways; ++at) {
    if ((way(set[at]) | ignored) == (tag | ignored)) return at;
  }
  return ways;
}

// Makes `tag` the most recently used, and what was in `at` leaves.
inline void put_first(Tag* set, std::uint32_t at, Tag tag) {
  for (; at > 0; --at) set_way(set[at], way(set[at - 1]));
  set_way(set[0], tag);
}

inline void remove(Tag* set, std::uint32_t ways, std::uint32_t at) {
  for (; at + 1 < ways; ++at) set_way(set[at], way(set[at + 1]));
  set_way(set[ways - 1], kFree);
}

}  // namespace atl::cachesim
