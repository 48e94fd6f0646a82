// Work of all threads at once: a loop over many light items, and barriers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend.hpp"

namespace atl::perf {

// A few instructions and four bytes to write. The compiler vectorizes it where the runtime allows
// it.
constexpr std::uint32_t light_item(std::size_t i, std::uint32_t salt) {
  const auto x = static_cast<std::uint32_t>(i) + salt;
  return x * 2'654'435'761U ^ (x >> 7);
}

struct LightBody {
  std::uint32_t* items = nullptr;
  std::uint32_t salt = 0;
  void operator()(std::size_t i) const { items[i] = light_item(i, salt); }
};

// Checks each `step`-th item, the first and the last: only a few, because this is timed.
inline bool is_done(const std::vector<std::uint32_t>& items, std::uint32_t salt, std::size_t step) {
  for (std::size_t i = 0; i < items.size(); i += step) {
    if (items[i] != light_item(i, salt)) return false;
  }
  return items.back() == light_item(items.size() - 1, salt);
}

template <class Runtime>
void pass_barriers(Runtime& runtime, int threads, long times) {
  typename Runtime::Barrier barrier(threads);
  runtime.team([&barrier, times](int) {
    for (long i = 0; i < times; ++i) barrier.arrive_and_wait();
  });
}

// Checks that no thread passes a barrier before all others have reached it.
template <class Runtime>
bool barriers_hold(Runtime& runtime, int threads, long times) {
  typename Runtime::Barrier barrier(threads);
  std::vector<std::atomic<long>> reached(static_cast<std::size_t>(threads));
  std::atomic<bool> held = true;
  runtime.team([&](int rank) {
    for (long i = 1; i <= times; ++i) {
      reached[static_cast<std::size_t>(rank)].store(i, std::memory_order_relaxed);
      barrier.arrive_and_wait();
      for (const auto& other : reached) {
        if (other.load(std::memory_order_relaxed) < i) held = false;
      }
    }
  });
  return held;
}

}  // namespace atl::perf
