// A perf event's counter, read in user mode: the page that perf_event_open(2)'s descriptor maps,
// and the instruction rdpmc. Five counters take some 0.1 us instead of a system call for each
// group.
//
// The page's `lock` is a sequence number: the kernel changes it whenever it changes anything else,
// also when the thread goes to another CPU or the event leaves its counter. So what was read
// between two equal numbers belongs together, and is of the CPU on which it was read. The protocol
// is that of <linux/perf_event.h>, struct perf_event_mmap_page.
//
// x86-64 only; elsewhere, and where the kernel does not allow it (cap_user_rdpmc, cap_user_time),
// there is nothing to read, and read(2) remains. No machine of ours has counters: the protocol is
// tested on pages that are made up, and the times also on a real page of a software event.
#pragma once

#include <linux/perf_event.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>

namespace atl::runtime {

struct Counter {
  std::uint64_t value = 0;
  std::uint64_t enabled_ns = 0;
  std::uint64_t running_ns = 0;  // less than enabled_ns where events take turns on the PMU
};

// What the thread that the event counts may read from its page. `cpu.rdpmc(n)` is counter n,
// `cpu.ticks()` the time stamp counter. Empty without the kernel's leave, or if the page changed
// during each of a few tries. Pure but for `cpu`.
template <class Cpu>
[[nodiscard]] std::optional<Counter> read_counter(const volatile perf_event_mmap_page& page,
                                                  const Cpu& cpu) {
  // A try is shorter than the time between two interrupts, so a second one fails hardly ever.
  constexpr int kTries = 8;
  for (int tries = 0; tries < kTries; ++tries) {
    const std::uint32_t lock = page.lock;
    // The kernel writes on the CPU that runs this thread, so only the compiler must keep the order.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (page.cap_user_rdpmc == 0 || page.cap_user_time == 0) return std::nullopt;
    std::uint64_t ticks = cpu.ticks();
    if (page.cap_user_time_short != 0) {
      const std::uint64_t since = page.time_cycles;
      ticks = since + ((ticks - since) & page.time_mask);
    }
    const unsigned shift = page.time_shift;
    const std::uint64_t mult = page.time_mult;
    // In two parts, so that the product does not overflow.
    const std::uint64_t low = ticks & ((std::uint64_t{1} << shift) - 1);
    const std::uint64_t more_ns =
        page.time_offset + (ticks >> shift) * mult + ((low * mult) >> shift);
    Counter now;
    now.enabled_ns = page.time_enabled + more_ns;
    now.running_ns = page.time_running;
    now.value = static_cast<std::uint64_t>(page.offset);
    // 0: it is not on the PMU now, and all that it had counted is in `offset`.
    if (const std::uint32_t index = page.index; index != 0) {
      now.running_ns += more_ns;
      // The counter has fewer bits than 64, the highest of which is a sign.
      const int unused = 64 - page.pmc_width;
      const std::uint64_t raw = cpu.rdpmc(index - 1) << unused;
      now.value += static_cast<std::uint64_t>(static_cast<std::int64_t>(raw) >> unused);
    }
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (page.lock == lock) return now;
  }
  return std::nullopt;
}

// The mapped page of one event.
class CounterPage {
 public:
  // Without a page if the kernel maps none: read() is then empty.
  explicit CounterPage(int descriptor) noexcept;
  CounterPage(CounterPage&& other) noexcept : page_(std::exchange(other.page_, nullptr)) {}
  CounterPage& operator=(CounterPage&& other) noexcept {
    std::swap(page_, other.page_);
    return *this;
  }
  ~CounterPage();

  // Only on the thread that the event counts.
  [[nodiscard]] std::optional<Counter> read() const noexcept;

 private:
  perf_event_mmap_page* page_ = nullptr;
};

}  // namespace atl::runtime
