// The public kinds of placed memory on the machine that runs the tests.

#include "atoll/runtime/memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory_resource>
#include <numeric>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace {

using atl::Array;
using atl::NodeMap;
using atl::Pages;
using atl::Replicated;
using atl::RuntimeFault;

// An allowed node with memory: the node of a page of ours.
int a_node() {
  static const int node = [] {
    auto array = Array<char>::local(1);
    array[0] = 1;
    const auto found = array.pages_found().bytes_by_node;
    return found.empty() ? 0 : found.begin()->first;
  }();
  return node;
}

NodeMap ranks(int count) {
  return {{a_node()}, std::vector<int>(static_cast<std::size_t>(count), a_node())};
}

// The result of `look` for pages that have all been touched. A page that the kernel is moving
// (compaction) is absent until it has moved.
auto without_absent(auto&& look) {
  auto found = look();
  for (int looks = 0; looks < 10'000 && found.absent_bytes > 0; ++looks) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    found = look();
  }
  return found;
}

template <typename T>
std::vector<Array<T>> of_every_kind(std::size_t size, Pages pages) {
  std::vector<Array<T>> arrays;
  arrays.push_back(Array<T>::local(size, pages));
  arrays.push_back(Array<T>::local(size, a_node(), pages));
  arrays.push_back(Array<T>::interleaved(size, ranks(1), pages));
  arrays.push_back(Array<T>::partitioned(size, ranks(3), pages));
  return arrays;
}

TEST(RuntimeMemory, ArraysBeginAsZerosAndHoldWhatIsWritten) {
  for (auto& array : of_every_kind<long>(100'000, Pages::normal)) {
    EXPECT_EQ(array.size(), 100'000U);
    EXPECT_EQ(std::count(array.begin(), array.end(), 0), 100'000);
    std::iota(array.begin(), array.end(), 0L);
    const Array<long> moved = std::move(array);
    EXPECT_EQ(moved[99'999], 99'999);
    EXPECT_EQ(std::accumulate(moved.begin(), moved.end(), 0L), 100'000L * 99'999 / 2);
  }
}

TEST(RuntimeMemory, PagesAreAbsentUntilTouchedAndThenCounted) {
  auto array = Array<char>::partitioned(1 << 20, ranks(2));
  EXPECT_EQ(array.pages_found().absent_bytes, 1U << 20);
  std::fill(array.begin(), array.end(), 'x');
  const auto found = without_absent([&] { return array.pages_found(); });
  EXPECT_EQ(found.absent_bytes, 0U);
  EXPECT_EQ(found.bytes_by_node, (std::map<int, std::size_t>{{a_node(), 1 << 20}}));
}

TEST(RuntimeMemory, AnEmptyArrayHasEmptyParts) {
  for (auto& array : of_every_kind<int>(0, Pages::normal)) {
    EXPECT_TRUE(array.empty());
    for (int rank = 0; rank < array.parts(); ++rank) EXPECT_TRUE(array.part(rank).empty());
    EXPECT_TRUE(array.pages_found().bytes_by_node.empty());
  }
}

TEST(RuntimeMemory, SizesThatCannotBeAreFaults) {
  constexpr auto kMost = std::numeric_limits<std::size_t>::max();
  for (const std::size_t size : {kMost, kMost / 8 + 2, kMost / 8, kMost / 16, kMost / 32}) {
    EXPECT_THROW(Array<long>::local(size), RuntimeFault) << size;
    EXPECT_THROW(Array<long>::partitioned(size, ranks(3)), RuntimeFault) << size;
  }
}

TEST(RuntimeMemory, UnknownRanksAndNodesAreFaults) {
  auto array = Array<int>::partitioned(10, ranks(3));
  EXPECT_THROW(static_cast<void>(array.part(-1)), RuntimeFault);
  EXPECT_THROW(static_cast<void>(array.part(3)), RuntimeFault);
  EXPECT_THROW(array.rehome(std::vector<int>{0}), RuntimeFault);
  EXPECT_THROW(Array<int>::partitioned(10, NodeMap{{0}, {}}), RuntimeFault);
  EXPECT_THROW(Array<int>::interleaved(10, NodeMap{}), RuntimeFault);
  EXPECT_THROW(Replicated<int>(10, NodeMap{}), RuntimeFault);
  for (const std::size_t size : {0U, 10U}) {
    EXPECT_THROW(Array<int>::local(size, -1), RuntimeFault);
    EXPECT_THROW(Array<int>::partitioned(size, NodeMap{{}, {a_node(), -1}}), RuntimeFault);
    EXPECT_THROW(Replicated<int>(size, NodeMap{{-1}, {}}), RuntimeFault);
  }
  if (!atl::why_unplaced().empty()) GTEST_SKIP() << atl::why_unplaced();
  EXPECT_THROW(Array<int>::local(10, 1'000), RuntimeFault);
  EXPECT_THROW(static_cast<void>(atl::local_memory(1'000)), RuntimeFault);
}

TEST(RuntimeMemory, WhatRunsOverTheEndFaults) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto array = Array<char>::local(5000);
  volatile char* const data = array.data();
  EXPECT_DEATH(data[8192] = 1, "");
  EXPECT_DEATH(data[-1] = 1, "");
}

TEST(RuntimeMemory, TransparentPagesAreHadOrRefused) {
  constexpr std::size_t kBytes = 4 << 20;
  try {
    auto array = Array<char>::partitioned(kBytes, ranks(2), Pages::transparent);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(array.data()) % (2 << 20), 0U);
    std::fill(array.begin(), array.end(), 'x');
    const auto found = without_absent([&] { return array.pages_found(); });
    // The kernel decides how many it finds.
    EXPECT_LE(found.huge_bytes, kBytes);
    EXPECT_EQ(found.absent_bytes, 0U);
  } catch (const RuntimeFault& fault) {
    EXPECT_NE(std::string(fault.what()).find("transparent huge pages"), std::string::npos);
  }
}

TEST(RuntimeMemory, PagesOfAPoolAreHadOrRefusedWithTheRemedy) {
  try {
    const auto array = Array<char>::local(1 << 20, Pages::huge2m);
    EXPECT_EQ(array.pages_found().huge_bytes, 2U << 20);
  } catch (const RuntimeFault& fault) {
    const std::string why = fault.what();
    EXPECT_TRUE(why.find("nr_hugepages") != std::string::npos ||
                why.find("Pages::transparent") != std::string::npos)
        << why;
  }
}

TEST(RuntimeMemory, RehomingOnTheRightNodeMovesNothing) {
  auto array = Array<int>::partitioned(1 << 20, ranks(2));
  std::fill(array.begin(), array.end(), 1);
  const auto done = without_absent([&] {
    const auto each = array.rehome(ranks(2).node_of_rank);
    EXPECT_EQ(each.moved_bytes + each.failed_bytes, 0U) << each.why;
    return each;
  });
  EXPECT_EQ(done.already_bytes, 4U << 20);
  EXPECT_EQ(done.absent_bytes, 0U);
  auto local = Array<int>::local(10);
  EXPECT_EQ(local.rehome(ranks(1).node_of_rank).already_bytes, 0U);
}

TEST(RuntimeMemory, ArraysComeAndGoWhileAllAreRehomed) {
  auto standing = Array<int>::partitioned(1 << 18, ranks(2));
  std::fill(standing.begin(), standing.end(), 7);
  std::jthread mover([](const std::stop_token& stop) {
    const NodeMap map = ranks(2);
    while (!stop.stop_requested()) atl::rehome_all(map);
  });
  for (int round = 0; round < 50; ++round) {
    auto array = Array<int>::partitioned(1 << 16, ranks(2));
    std::fill(array.begin(), array.end(), round);
    EXPECT_EQ(array[12'345], round);
    EXPECT_EQ(std::count(standing.begin(), standing.end(), 7), 1 << 18);
  }
}

TEST(RuntimeMemoryReplicated, AnUpdateReachesEveryCopy) {
  Replicated<int> table(1000, NodeMap{{a_node(), a_node()}, {}});
  EXPECT_EQ(table.copies(), 1U);  // a node named twice has one copy
  EXPECT_EQ(table.local()[999], 0);
  std::size_t calls = 0;
  table.update([&calls](std::span<int> copy) {
    ++calls;
    std::iota(copy.begin(), copy.end(), 1);
  });
  EXPECT_EQ(calls, table.copies());
  EXPECT_EQ(table.local()[999], 1000);
  EXPECT_EQ(table.on(12'345).data(), table.on(a_node()).data());  // no copy there: the first
  EXPECT_EQ(table.on(-1).data(), table.on(a_node()).data());
}

TEST(RuntimeMemoryResources, ContainersLiveInThem) {
  EXPECT_EQ(&atl::local_memory(a_node()), &atl::local_memory(a_node()));
  EXPECT_EQ(&atl::interleaved_memory({{a_node(), a_node()}, {}}),
            &atl::interleaved_memory({{a_node()}, {}}));
  for (auto* const memory : {&atl::local_memory(), &atl::interleaved_memory(ranks(1))}) {
    std::pmr::unordered_map<int, std::pmr::string> texts(memory);
    for (int i = 0; i < 500; ++i) {
      texts[i] = std::string(static_cast<std::size_t>(i) * 160, 'a');  // up to 80 KB
    }
    for (int i = 0; i < 500; i += 2) texts.erase(i);
    EXPECT_EQ(texts.at(499).size(), 499U * 160);
    EXPECT_EQ(texts.size(), 250U);
  }
  EXPECT_THROW(static_cast<void>(atl::local_memory().allocate(std::size_t{1} << 62)),
               std::bad_alloc);
}

TEST(RuntimeMemoryResources, OneThreadFreesWhatAnotherTook) {
  auto& memory = atl::local_memory();
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&memory, thread] {
      for (int round = 0; round < 20; ++round) {
        std::pmr::vector<std::pmr::string> mine(&memory);
        for (std::size_t i = 0; i < 100; ++i) mine.emplace_back(20 + i * 10, 'x');
        std::jthread([taken = std::move(mine), thread]() mutable {
          taken.emplace_back("from thread " + std::to_string(thread));
          taken.clear();
        });
      }
    });
  }
}

}  // namespace
