// Memory lies where it was asked for, and what cannot be had is refused before it is touched.

#include "memory.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>

#include "available.hpp"
#include "base/smaps.hpp"
#include "fault.hpp"

namespace {

using atl::base::huge_bytes_in;
using atl::probe::available_bytes;
using atl::probe::Code;
using atl::probe::Fault;
using atl::probe::Memory;
using atl::probe::page_bytes;

// A page that the kernel moves at that moment (compaction) is not seen until it has moved it.
std::map<int, std::size_t> nodes_of(const Memory& memory, std::size_t wanted) {
  std::map<int, std::size_t> nodes;
  for (int looks = 0; looks < 1000; ++looks) {
    if (looks > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    nodes = memory.report().nodes;
    std::size_t pages = 0;
    for (const auto& [node, count] : nodes) pages += count;
    if (pages >= wanted) break;
  }
  return nodes;
}

// A node that has memory: 0, unless the tests are bound elsewhere.
int a_node() {
  const Memory memory(1, std::nullopt, false);
  memory.touch();
  return nodes_of(memory, 1).begin()->first;
}

TEST(Memory, IsOnItsNodeWhenItIsMade) {
  const int node = a_node();
  const Memory memory(10 * page_bytes() + 1, node, false);
  EXPECT_EQ(nodes_of(memory, 11), (std::map<int, std::size_t>{{node, 11}}));
  EXPECT_FALSE(memory.report().huge);
}

TEST(Memory, IsNowhereUntilItIsTouched) {
  const Memory memory(8 * page_bytes(), std::nullopt, false);
  EXPECT_TRUE(memory.report().nodes.empty());
  memory.touch(2 * page_bytes(), 3 * page_bytes());
  std::size_t pages = 0;
  for (const auto& [node, count] : nodes_of(memory, 3)) pages += count;
  EXPECT_EQ(pages, 3U);
}

TEST(Memory, ReportsASampleOfALargePart) {
  const int node = a_node();
  const Memory memory(5000 * page_bytes(), node, false);
  EXPECT_EQ(nodes_of(memory, 1024), (std::map<int, std::size_t>{{node, 1024}}));
}

TEST(Memory, HugePagesAreAlignedAndTold) {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string enabled;
  std::getline(file, enabled);
  if (enabled.empty() || enabled.find("[never]") != std::string::npos) {
    GTEST_SKIP() << "transparent huge pages are off";
  }
  const std::size_t huge = atl::probe::huge_page_bytes();
  ASSERT_GT(huge, page_bytes());
  const Memory memory(4 * huge, std::nullopt, true);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % huge, 0U);
  EXPECT_FALSE(memory.report().huge);  // asked for, but none there
  memory.touch();
  // A fragmented machine may have none to give; then the report has to say so, as smaps does.
  std::ifstream smaps("/proc/self/smaps");
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
  EXPECT_EQ(memory.report().huge,
            huge_bytes_in(smaps, begin, begin + memory.bytes()) >= memory.bytes() / 10 * 9);
}

TEST(Smaps, CountsTheMappingsThatOverlap) {
  const std::string text =
      "7f0000000000-7f0000200000 rw-p 00000000 00:00 0 \n"
      "Size:               2048 kB\n"
      "AnonHugePages:      2048 kB\n"
      "VmFlags: rd wr mr mw me ac sd hg \n"
      "7f0000200000-7f0000800000 rw-p 00000000 00:00 0                  [heap]\n"
      "AnonHugePages:      4096 kB\n"
      "FilePmdMapped:      9999 kB\n"
      "7f0000800000-7f0000a00000 r--p 00000000 08:01 7                  /a-b AnonHugePages: 1 kB\n"
      "AnonHugePages:         0 kB\n";
  const auto huge_bytes = [&](std::uint64_t begin, std::uint64_t end) {
    std::istringstream smaps(text);
    return huge_bytes_in(smaps, begin, end);
  };
  constexpr std::uint64_t kMib = 1 << 20;
  EXPECT_EQ(huge_bytes(0x7f0000000000, 0x7f0000200000), 2 * kMib);
  EXPECT_EQ(huge_bytes(0x7f00001fffff, 0x7f0000200001), 6 * kMib);
  EXPECT_EQ(huge_bytes(0x7f0000300000, 0x7f0000301000), 4 * kMib);
  EXPECT_EQ(huge_bytes(0x7f0000800000, 0x7f0000a00000), 0U);
  EXPECT_EQ(huge_bytes(0x1000, 0x2000), 0U);
  std::istringstream nonsense("AnonHugePages: 12 kB\n-\n\xff");
  EXPECT_EQ(huge_bytes_in(nonsense, 0, ~std::uint64_t{0}), 0U);
}

Code code_of(std::size_t bytes, std::optional<int> node) {
  try {
    const Memory memory(bytes, node, false);
  } catch (const Fault& fault) {
    return fault.code();
  }
  return Code::kKernel;
}

TEST(Memory, MoreThanThereIsIsRefused) {
  EXPECT_EQ(code_of(std::size_t{1} << 46, std::nullopt), Code::kMemory);
  // Others on the machine may give memory back between our look and the constructor's.
  Code more_than_available = Code::kKernel;
  for (int times = 0; times < 20 && more_than_available != Code::kMemory; ++times) {
    more_than_available = code_of(available_bytes(std::nullopt) + (1 << 20), std::nullopt);
  }
  EXPECT_EQ(more_than_available, Code::kMemory);
  EXPECT_EQ(code_of(std::size_t{1} << 46, a_node()), Code::kMemory);
}

TEST(Memory, ANodeThatIsNotThereIsRefused) {
  EXPECT_EQ(code_of(page_bytes(), 4000), Code::kMemory);
}

TEST(Available, IsSomethingAndNoMoreThanTheMachineHas) {
  std::ifstream file("/proc/meminfo");
  std::string key;
  std::uint64_t total_kib = 0;
  file >> key >> total_kib;
  ASSERT_EQ(key, "MemTotal:");
  EXPECT_GT(available_bytes(std::nullopt), 0U);
  EXPECT_LT(available_bytes(std::nullopt), total_kib * 1024);
}

}  // namespace
