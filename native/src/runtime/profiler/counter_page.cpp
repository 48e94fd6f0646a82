#include "counter_page.hpp"

#include <sys/mman.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "stacks/page_size.hpp"

namespace atl::runtime {

CounterPage::CounterPage([[maybe_unused]] int descriptor) noexcept {
#if defined(__x86_64__)
  // The first page alone: there are no samples. It counts against perf_event_mlock_kb.
  void* const mapped = mmap(nullptr, page_bytes(), PROT_READ, MAP_SHARED, descriptor, 0);
  if (mapped != MAP_FAILED) page_ = static_cast<perf_event_mmap_page*>(mapped);
#endif
}

CounterPage::~CounterPage() {
  if (page_ != nullptr) munmap(page_, page_bytes());
}

std::optional<Counter> CounterPage::read() const noexcept {
#if defined(__x86_64__)
  struct ThisCpu {
    static std::uint64_t rdpmc(std::uint32_t counter) {
      return static_cast<std::uint64_t>(__rdpmc(static_cast<int>(counter)));
    }
    static std::uint64_t ticks() { return __rdtsc(); }
  };
  if (page_ != nullptr) return read_counter(*page_, ThisCpu{});
#endif
  return std::nullopt;
}

}  // namespace atl::runtime
