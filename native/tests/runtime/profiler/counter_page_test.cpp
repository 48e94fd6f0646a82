// Counters read in user mode: the protocol of the kernel's page on pages that are made up, the
// times on the real page of a software event, and what remains where the kernel forbids it.
#include "profiler/counter_page.hpp"

#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>

#include "profiler/perf_group.hpp"
#include "stacks/page_size.hpp"

namespace atl::runtime {
namespace {

// A CPU whose counters and clock say what the test sets. `meanwhile`: what the kernel does while
// a counter is read, given the number of the reading.
struct FakeCpu {
  std::uint64_t counter = 0;
  std::uint64_t now = 0;
  std::function<void(int)> meanwhile = [](int) {};
  mutable int readings = 0;
  mutable std::uint32_t last = 0;

  std::uint64_t rdpmc(std::uint32_t number) const {
    last = number;
    meanwhile(++readings);
    return counter;
  }
  std::uint64_t ticks() const { return now; }
};

// An event on counter 2 with 48 bits, of a CPU of 2 GHz: a tick is half a ns.
perf_event_mmap_page on_the_pmu() {
  perf_event_mmap_page page{};
  page.lock = 8;
  page.cap_user_rdpmc = 1;
  page.cap_user_time = 1;
  page.index = 3;
  page.pmc_width = 48;
  page.offset = 1000;
  page.time_enabled = 5000;
  page.time_running = 4000;
  page.time_offset = 100;
  page.time_shift = 10;
  page.time_mult = 512;
  return page;
}

TEST(CounterPage, AddsWhatTheCounterAndTheClockHaveSince) {
  const perf_event_mmap_page page = on_the_pmu();
  FakeCpu cpu;
  cpu.counter = 23;
  cpu.now = 2049;  // rounded down, as the kernel does it
  const std::optional<Counter> now = read_counter(page, cpu);
  ASSERT_TRUE(now);
  EXPECT_EQ(cpu.last, 2U) << "the index is one more than the counter's number";
  EXPECT_EQ(now->value, 1023U);
  EXPECT_EQ(now->enabled_ns, 5000U + 100 + 1024);
  EXPECT_EQ(now->running_ns, 4000U + 100 + 1024);
}

TEST(CounterPage, TheHighestBitOfACounterIsItsSign) {
  perf_event_mmap_page page = on_the_pmu();
  // As the kernel arms a counter: at the negative of what is left until an overflow.
  page.offset = 1 << 20;
  FakeCpu cpu;
  cpu.counter = (std::uint64_t{1} << 48) - 24;
  EXPECT_EQ(read_counter(page, cpu)->value, (1U << 20) - 24);
  page.pmc_width = 64;
  cpu.counter = ~std::uint64_t{0};
  EXPECT_EQ(read_counter(page, cpu)->value, (1U << 20) - 1);
}

TEST(CounterPage, AnEventThatWaitsForItsTurnIsNotRunning) {
  perf_event_mmap_page page = on_the_pmu();
  page.index = 0;
  FakeCpu cpu;
  cpu.counter = 777;
  cpu.now = 2048;
  const std::optional<Counter> now = read_counter(page, cpu);
  ASSERT_TRUE(now);
  EXPECT_EQ(cpu.readings, 0) << "the counter is another event's";
  EXPECT_EQ(now->value, 1000U);
  EXPECT_EQ(now->enabled_ns, 5000U + 100 + 1024);
  EXPECT_EQ(now->running_ns, 4000U);
}

TEST(CounterPage, AClockOfFewBitsGoesOnFromItsLastReading) {
  perf_event_mmap_page page = on_the_pmu();
  page.cap_user_time_short = 1;
  page.time_cycles = 0xffff0;
  page.time_mask = 0xffff;
  FakeCpu cpu;
  cpu.now = 0x10;  // has wrapped around: 0x20 ticks later
  EXPECT_EQ(read_counter(page, cpu)->enabled_ns, 5000U + 100 + (0xffff0 + 0x20) / 2);
}

TEST(CounterPage, TimesOfYearsDoNotOverflow) {
  perf_event_mmap_page page = on_the_pmu();
  page.time_shift = 31;
  page.time_mult = 1U << 30;
  FakeCpu cpu;
  cpu.now = std::uint64_t{1} << 60;  // 18 years at 2 GHz
  EXPECT_EQ(read_counter(page, cpu)->enabled_ns, 5000U + 100 + (std::uint64_t{1} << 59));
}

// The thread goes to another CPU between two reads: what it has of the first one is thrown away.
TEST(CounterPage, IsReadAgainWhereTheKernelHasChangedIt) {
  perf_event_mmap_page page = on_the_pmu();
  FakeCpu cpu;
  cpu.counter = 50;
  cpu.meanwhile = [&](int reading) {
    if (reading > 1) return;
    page.lock += 2;
    page.index = 1;
    page.offset = 1050;
    page.time_enabled = 9000;
    page.time_running = 8000;
    cpu.counter = 7;
  };
  const std::optional<Counter> now = read_counter(page, cpu);
  ASSERT_TRUE(now);
  EXPECT_EQ(cpu.readings, 2);
  EXPECT_EQ(cpu.last, 0U);
  EXPECT_EQ(now->value, 1057U);
  EXPECT_EQ(now->running_ns, 8100U);
}

// Whatever the kernel does between any two of the reader's steps, a value is one that the counter
// had: it only rises.
TEST(CounterPage, NoValueIsOfTwoMoments) {
  perf_event_mmap_page page = on_the_pmu();
  page.offset = 0;
  FakeCpu cpu;
  std::uint64_t counted = 0;
  cpu.meanwhile = [&](int reading) {
    counted += 10;
    if (reading % 3 == 0) {  // off the PMU and on again: the counter begins at 0 again
      page.lock += 2;
      page.offset = static_cast<std::int64_t>(counted);
    }
    cpu.counter = counted - static_cast<std::uint64_t>(page.offset);
  };
  std::uint64_t before = 0;
  for (int i = 0; i < 100; ++i) {
    const std::optional<Counter> now = read_counter(page, cpu);
    ASSERT_TRUE(now);
    EXPECT_GT(now->value, before);
    EXPECT_EQ(now->value, counted);
    before = now->value;
  }
}

TEST(CounterPage, GivesUpWhereItNeverStandsStill) {
  perf_event_mmap_page page = on_the_pmu();
  FakeCpu cpu;
  cpu.meanwhile = [&](int) { ++page.lock; };
  EXPECT_EQ(read_counter(page, cpu), std::nullopt);
}

TEST(CounterPage, WithoutTheKernelsLeaveItReadsNothing) {
  FakeCpu cpu;
  perf_event_mmap_page page = on_the_pmu();
  page.cap_user_rdpmc = 0;
  EXPECT_EQ(read_counter(page, cpu), std::nullopt);
  page = on_the_pmu();
  page.cap_user_time = 0;
  EXPECT_EQ(read_counter(page, cpu), std::nullopt);
  EXPECT_EQ(cpu.readings, 0);
}

TEST(CounterPage, AFileThatCannotBeMappedIsNoPage) {
  CounterPage none(-1);
  EXPECT_EQ(none.read(), std::nullopt);
  CounterPage moved(std::move(none));
  EXPECT_EQ(moved.read(), std::nullopt);
}

#if defined(__x86_64__)
// The real page of a real event. It is a software event, which no counter counts; its times are
// those of every event.
TEST(CounterPage, TimesAreTheKernels) {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_TASK_CLOCK;
  attr.exclude_kernel = 1;
  attr.exclude_hv = 1;
  attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  const int file =
      static_cast<int>(syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
  if (file < 0) GTEST_SKIP() << "perf events: " << why_no_counters(errno, "not read");
  void* const mapped = mmap(nullptr, page_bytes(), PROT_READ, MAP_SHARED, file, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  const auto& page = *static_cast<const volatile perf_event_mmap_page*>(mapped);
  struct RealClock {
    static std::uint64_t rdpmc(std::uint32_t) { return 0; }
    static std::uint64_t ticks() { return __builtin_ia32_rdtsc(); }
  };
  EXPECT_EQ(read_counter(page, RealClock{}), std::nullopt) << "no counter of the CPU counts it";
  if (page.cap_user_time != 0) {  // else, as where the TSC is unstable, read(2) remains
    for (int i = 0; i < 1000; ++i) {
      std::uint64_t before[3];
      std::uint64_t after[3];
      ASSERT_EQ(read(file, before, sizeof before), static_cast<ssize_t>(sizeof before));
      // A copy, in which the counter may be read; retried if the kernel came between.
      perf_event_mmap_page copy;
      do {
        std::memcpy(&copy, mapped, sizeof copy);
      } while (copy.lock != page.lock);
      copy.cap_user_rdpmc = 1;
      const std::optional<Counter> now = read_counter(copy, RealClock{});
      ASSERT_EQ(read(file, after, sizeof after), static_cast<ssize_t>(sizeof after));
      if (copy.lock != page.lock) continue;  // another thread ran on this CPU meanwhile
      ASSERT_TRUE(now);
      // The kernel's own clock is smoothed, so the two may differ by some ns.
      EXPECT_GE(now->enabled_ns + 10'000, before[1]);
      EXPECT_LE(now->enabled_ns, after[1] + 10'000);
    }
  }
  munmap(mapped, page_bytes());
  close(file);
}
#endif

}  // namespace
}  // namespace atl::runtime
