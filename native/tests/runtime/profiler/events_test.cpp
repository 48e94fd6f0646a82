// CPU models, their events, and decoding of group reads. Group reads of hardware counters are made
// by hand after perf_event_open(2): no machine of ours has the counters. One is recorded.
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sys/mman.h>

#include <cerrno>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "profiler/cpu_model.hpp"
#include "profiler/events/amd.hpp"
#include "profiler/events/intel.hpp"
#include "profiler/perf_group.hpp"

namespace atl::runtime {
namespace {

std::string cpuinfo(const char* vendor, int family, int model, const char* stepping) {
  std::ostringstream text;
  text << "processor\t: 0\nvendor_id\t: " << vendor << "\ncpu family\t: " << family
       << "\nmodel\t\t: " << model << "\nmodel name\t: model : 7\nstepping\t: " << stepping
       << "\nmicrocode\t: 0x1\n\nprocessor\t: 1\nvendor_id\t: Other\n";
  return text.str();
}

const char* cpu_of(const char* vendor, int family, int model, const char* stepping = "1") {
  const auto cpu = cpu_model(cpuinfo(vendor, family, model, stepping));
  if (!cpu) return "unreadable";
  const FillTable* table = fill_table(*cpu);
  return table == nullptr ? "unknown" : table->cpu;
}

TEST(CpuModel, ServersAreRecognised) {
  EXPECT_STREQ(cpu_of("AuthenticAMD", 23, 0x31), "AMD Zen 2");  // Rome
  EXPECT_STREQ(cpu_of("AuthenticAMD", 25, 0x01), "AMD Zen 3");  // Milan
  EXPECT_STREQ(cpu_of("AuthenticAMD", 25, 0x11), "AMD Zen 4");  // Genoa
  EXPECT_STREQ(cpu_of("AuthenticAMD", 25, 0xa0), "AMD Zen 4");  // Bergamo
  EXPECT_STREQ(cpu_of("AuthenticAMD", 26, 0x02), "AMD Zen 5");  // Turin
  EXPECT_STREQ(cpu_of("GenuineIntel", 6, 0x55, "4"), "Intel Skylake-SP");
  EXPECT_STREQ(cpu_of("GenuineIntel", 6, 0x55, "7"), "Intel Cascade Lake");
  EXPECT_STREQ(cpu_of("GenuineIntel", 6, 0x6a), "Intel Ice Lake-SP");
  EXPECT_STREQ(cpu_of("GenuineIntel", 6, 0x8f), "Intel Sapphire Rapids");
  EXPECT_STREQ(cpu_of("GenuineIntel", 6, 0xcf), "Intel Emerald Rapids");
  EXPECT_STREQ(cpu_of("GenuineIntel", 6, 0xad), "Intel Granite Rapids");
}

TEST(CpuModel, OthersHaveNoEncodings) {
  EXPECT_STREQ(cpu_of("AuthenticAMD", 23, 0x01), "unknown");  // Zen 1
  EXPECT_STREQ(cpu_of("AuthenticAMD", 26, 0x50), "unknown");  // Zen 6
  EXPECT_STREQ(cpu_of("GenuineIntel", 6, 0x9e), "unknown");
  EXPECT_STREQ(cpu_of("GenuineIntel", 15, 0x55), "unknown");
  EXPECT_STREQ(cpu_of("HygonGenuine", 24, 0x01), "unknown");
}

TEST(CpuModel, ReadsTheFirstCpuOnly) {
  EXPECT_EQ(cpu_model(cpuinfo("GenuineIntel", 6, 85, "unknown")),
            (CpuModel{"GenuineIntel", 6, 85, 0}));
  EXPECT_FALSE(cpu_model(""));
  EXPECT_FALSE(cpu_model("processor : 0\nBogoMIPS : 50\nCPU implementer : 0x41\n\n"));
  EXPECT_FALSE(cpu_model("vendor_id : GenuineIntel\ncpu family : 6\nmodel : x\n"));
  EXPECT_FALSE(cpu_model("vendor_id : GenuineIntel\ncpu family : 99999999999999999999\nmodel : 1"));
}

TEST(FillTables, FitIntoTheCounters) {
  for (const FillTable* table : {&kZen2, &kZen3, &kZen4, &kZen5, &kSkylakeSp, &kCascadeLake,
                                 &kIceLakeSp, &kSapphireRapids, &kEmeraldRapids, &kGraniteRapids}) {
    SCOPED_TRACE(table->cpu);
    const bool amd = std::string_view(table->cpu).starts_with("AMD");
    std::array<std::size_t, kMaxFillGroups> sizes{};
    std::set<std::pair<int, int>> seen;
    for (const FillEvent& event : table->events) {
      ASSERT_LT(event.group, kMaxFillGroups);
      ++sizes[event.group];
      EXPECT_TRUE(seen.insert({event.event, event.umask}).second) << event.name;
    }
    // One counter may be the watchdog's: 5 of AMD's 6, 3 of Intel's 4 that know these events.
    for (const std::size_t size : sizes) EXPECT_LE(size, amd ? 5U : 3U);
  }
}

constexpr std::uint64_t kMs = 1'000'000;

// Made by hand: Zen 4, 80 ms, never multiplexed.
TEST(GroupRead, FillsOfZen4) {
  const std::array<std::uint64_t, 8> words = {5,       80 * kMs, 80 * kMs,  4'100'017,
                                              902'113, 17,       3'000'441, 12};
  const auto reading = decode_group(words, 5);
  ASSERT_TRUE(reading);
  const FillCounts fills = fills_between(kZen4, {}, {*reading});
  EXPECT_EQ(fills.of(FillSource::local_chiplet), 4'100'017U);
  EXPECT_EQ(fills.of(FillSource::remote_chiplet), 902'113U);
  EXPECT_EQ(fills.of(FillSource::node_cache), std::nullopt);
  EXPECT_EQ(fills.of(FillSource::remote_node), 17U);
  EXPECT_EQ(fills.of(FillSource::memory_local), 3'000'441U);
  EXPECT_EQ(fills.of(FillSource::memory_remote), 12U);
  EXPECT_EQ(fills.running_share, 1);
}

// Made by hand: Skylake-SP with hyper-threads, two groups that take turns.
TEST(GroupRead, TurnsAreScaledAndEventsOfOneSourceAddUp) {
  const std::array<std::uint64_t, 6> first = {3, 100 * kMs, 50 * kMs, 1000, 200, 30};
  const std::array<std::uint64_t, 5> second = {2, 100 * kMs, 25 * kMs, 7, 5};
  const FillReading reading = {*decode_group(first, 3), *decode_group(second, 2)};
  const FillCounts fills = fills_between(kSkylakeSp, {}, reading);
  EXPECT_EQ(fills.of(FillSource::node_cache), 2000U);
  EXPECT_EQ(fills.of(FillSource::memory_local), 400U);
  EXPECT_EQ(fills.of(FillSource::memory_remote), 60U);
  EXPECT_EQ(fills.of(FillSource::remote_node), 28U + 20U);
  EXPECT_EQ(fills.of(FillSource::local_chiplet), std::nullopt);
  EXPECT_EQ(fills.of(FillSource::remote_chiplet), std::nullopt);
  EXPECT_DOUBLE_EQ(fills.running_share, 0.25);
}

TEST(GroupRead, AGroupThatNeverRanTellsNothing) {
  const std::array<std::uint64_t, 6> first = {3, 10 * kMs, 10 * kMs, 1000, 200, 30};
  const std::array<std::uint64_t, 5> second = {2, 10 * kMs, 0, 0, 0};
  const FillReading reading = {*decode_group(first, 3), *decode_group(second, 2)};
  const FillCounts fills = fills_between(kSkylakeSp, {}, reading);
  EXPECT_EQ(fills.of(FillSource::node_cache), 1000U);
  EXPECT_EQ(fills.of(FillSource::remote_node), std::nullopt);
  EXPECT_EQ(fills.running_share, 0);
}

TEST(GroupRead, OnlyWhatHappenedBetweenTwoReadingsCounts) {
  const std::array<std::uint64_t, 7> before = {4, 10 * kMs, 10 * kMs, 100, 10, 1000, 1};
  const std::array<std::uint64_t, 7> after = {4, 30 * kMs, 20 * kMs, 150, 10, 1700, 2};
  const FillCounts fills =
      fills_between(kZen2, {*decode_group(before, 4)}, {*decode_group(after, 4)});
  EXPECT_EQ(fills.of(FillSource::node_cache), 100U);
  EXPECT_EQ(fills.of(FillSource::remote_node), 0U);
  EXPECT_EQ(fills.of(FillSource::memory_local), 1400U);
  EXPECT_DOUBLE_EQ(fills.running_share, 0.5);
}

TEST(GroupRead, WordsOfAnotherShapeAreRefused) {
  const std::array<std::uint64_t, 5> words = {2, kMs, kMs, 1, 2};
  EXPECT_TRUE(decode_group(words, 2));
  EXPECT_FALSE(decode_group(words, 3));
  EXPECT_FALSE(decode_group(std::span(words).first(4), 2));
  EXPECT_FALSE(decode_group({}, 0));
  const std::array<std::uint64_t, 5> other = {3, kMs, kMs, 1, 2};
  EXPECT_FALSE(decode_group(other, 2));
}

// Recorded on Linux 6.18: minor and major faults, and the task clock (which such a group reads as
// 0), while 4 MiB were written.
TEST(GroupRead, RecordedSoftwareEvents) {
  const std::array<std::uint64_t, 6> words = {3, 3536024, 3536024, 1033, 0, 0};
  const auto reading = decode_group(words, 3);
  ASSERT_TRUE(reading);
  EXPECT_EQ(reading->enabled_ns, words[1]);
  EXPECT_EQ(reading->running_ns, reading->enabled_ns);
  EXPECT_GE(reading->values[0], 1024U);
  EXPECT_EQ(reading->values[1], 0U);
}

TEST(AddFills, ASumLacksWhatOnePartLacks) {
  FillCounts sum;
  FillCounts part;
  part.of(FillSource::node_cache) = 5;
  part.of(FillSource::memory_local) = 7;
  part.running_share = 1;
  add_fills(sum, part);
  EXPECT_EQ(sum, part);
  part.of(FillSource::memory_local).reset();
  part.running_share = 0.5;
  add_fills(sum, part);
  add_fills(sum, FillCounts{});  // a worker that was never counted
  EXPECT_EQ(sum.of(FillSource::node_cache), 10U);
  EXPECT_EQ(sum.of(FillSource::memory_local), std::nullopt);
  EXPECT_EQ(sum.running_share, 0.5);
}

TEST(PerfGroup, CountsItsOwnThread) {
  PerfGroup group;
  const int error = group.open({{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
                                {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN}});
  if (error != 0) {
    GTEST_SKIP() << "perf events: " << why_no_counters(error, "not read");
  }
  const auto before = group.read();
  ASSERT_TRUE(before);
  constexpr std::size_t kBytes = 1 << 20;
  // From the kernel: memory from new[] may have been touched before.
  void* const fresh =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(fresh, MAP_FAILED);
  for (std::size_t i = 0; i < kBytes; i += 4096) static_cast<volatile char*>(fresh)[i] = 1;
  std::optional<GroupReading> after;
  std::thread([&] { after = group.read(); }).join();  // any thread may read
  ASSERT_TRUE(after);
  EXPECT_GT(after->values[0], before->values[0]);
  EXPECT_GT(after->values[1], before->values[1]);
  EXPECT_GE(after->enabled_ns, after->running_ns);
  munmap(fresh, kBytes);
}

TEST(PerfGroup, AnUnknownEventIsAnErrno) {
  PerfGroup group;
  EXPECT_NE(group.open({{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY}, {PERF_TYPE_SOFTWARE, 9999}}), 0);
  EXPECT_FALSE(group.read());
}

TEST(WhyNoCounters, NamesTheRemedy) {
  EXPECT_NE(why_no_counters(EACCES, "4\n").find("perf_event_paranoid is 4)"), std::string::npos);
  EXPECT_NE(why_no_counters(EACCES, "4").find("sysctl kernel.perf_event_paranoid=2"),
            std::string::npos);
  EXPECT_NE(why_no_counters(ENOENT, "2").find("bare machine"), std::string::npos);
  EXPECT_NE(why_no_counters(EMFILE, "2").find("ulimit -n"), std::string::npos);
  for (const int error : {EACCES, EPERM, ENOENT, EOPNOTSUPP, ENOSYS, EMFILE, EINVAL}) {
    const std::string why = why_no_counters(error, "2\n");
    EXPECT_EQ(why.rfind("n/a (", 0), 0U) << why;
    EXPECT_EQ(why.find('\n'), std::string::npos) << why;
  }
}

}  // namespace
}  // namespace atl::runtime
