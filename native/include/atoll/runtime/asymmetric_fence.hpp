// What a producer does after it published work, inline: an almost free fence, then a check whether
// a worker sleeps. The expensive other halves are in native/src/runtime/scheduler
// (asymmetric_fence.hpp, parking.hpp), which explain why they belong together.
#pragma once

#include <atomic>
#include <cstdint>

#include "atoll/build.h"
#include "atoll/runtime/export.hpp"

namespace atl::detail {

// Whether heavy_fence() is membarrier(2), so that light_fence() costs nothing. Constant from before
// the first worker starts; false until then.
extern ATOLL_EXPORT bool membarrier_works;

inline void full_fence() {
#if defined(ATL_RT_TSAN)
  // ThreadSanitizer has no fences, and g++ refuses to compile one. A locked instruction on a
  // variable that nobody else sees acts as a fence and hides no race from it.
  std::atomic<int> own{0};
  own.fetch_add(1, std::memory_order_seq_cst);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

// If one thread stores A, calls light_fence() and loads B, and another stores B, calls
// heavy_fence() and loads A, then at least one of the two loads sees the other's store. Two light
// fences do not guarantee that.
inline void light_fence() {
  if (membarrier_works) [[likely]] {
    std::atomic_signal_fence(std::memory_order_seq_cst);  // for the compiler only
  } else {
    full_fence();
  }
}

// Parking's word: sleepers in the upper half, searchers in the lower.
inline constexpr std::uint64_t kSearcher = 1;
inline constexpr std::uint64_t kSleeper = std::uint64_t{1} << 32;

// Whether a worker sleeps and none searches.
inline bool wants_wake(std::uint64_t word) {
  return word >= kSleeper && static_cast<std::uint32_t>(word) == 0;
}

}  // namespace atl::detail
