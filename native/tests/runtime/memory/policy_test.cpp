// The calls to a kernel with four nodes, and how its answers are used.

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "fake_kernel.hpp"
#include "memory/block.hpp"
#include "memory/chunks.hpp"
#include "memory/registry.hpp"

namespace {

using atl::NodeMap;
using atl::Pages;
using atl::Rehomed;
using atl::RuntimeFault;
using atl::runtime::Block;
using atl::runtime::Layout;
using atl::runtime::page_bytes;
using atl::runtime::Placement;
using atl::test::FakeKernel;
using Policy = FakeKernel::Policy;

constexpr auto kLocal = Layout::Kind::kLocal;
constexpr auto kInterleaved = Layout::Kind::kInterleaved;
constexpr auto kPartitioned = Layout::Kind::kPartitioned;

std::string fault_of(const auto& what) {
  try {
    what();
  } catch (const RuntimeFault& fault) {
    return fault.what();
  }
  return "no fault";
}

TEST(RuntimeMemoryPolicy, LocalPrefersItsNodeAndNothingIsTouched) {
  FakeKernel kernel;
  const Block block(kernel, 10 * page_bytes() + 1, {kLocal, {3}}, Pages::normal);
  EXPECT_EQ(kernel.pages_with_policy(), 11U);
  EXPECT_EQ(kernel.policy_at(block.data() + 10 * page_bytes()),
            (Policy{Placement::kPreferred, {3}}));
  EXPECT_EQ(block.found().absent_bytes, 11 * page_bytes());
  kernel.touch(block.data(), 4 * page_bytes());
  EXPECT_EQ(block.found().bytes_by_node, (std::map<int, std::size_t>{{3, 4 * page_bytes()}}));
}

TEST(RuntimeMemoryPolicy, InterleavedNamesAllNodes) {
  FakeKernel kernel;
  const Block block(kernel, 8 * page_bytes(), {kInterleaved, kernel.nodes}, Pages::normal);
  EXPECT_EQ(kernel.policy_at(block.data()), (Policy{Placement::kInterleaved, {0, 2, 3, 5}}));
}

TEST(RuntimeMemoryPolicy, EachPartIsOnTheNodeOfItsRank) {
  FakeKernel kernel;
  const std::vector<int> ranks{5, 0, 5, 2, 3};
  const Block block(kernel, 23 * page_bytes() + 7, {kPartitioned, ranks}, Pages::normal);
  EXPECT_EQ(kernel.pages_with_policy(), 24U);
  for (int rank = 0; rank < 5; ++rank) {
    const auto [begin, end] = block.part(rank);
    for (std::size_t at = begin; at < end; at += page_bytes()) {
      EXPECT_EQ(kernel.policy_at(block.data() + at).nodes,
                std::vector<int>{ranks[static_cast<std::size_t>(rank)]});
    }
  }
}

TEST(RuntimeMemoryPolicy, TransparentIsAlignedAndSplitByHugePages) {
  FakeKernel kernel;
  const std::size_t huge = atl::runtime::huge_page_bytes();
  const Block block(kernel, 4 * huge, {kPartitioned, {0, 2, 3}}, Pages::transparent);
  const auto address = reinterpret_cast<std::uintptr_t>(block.data());
  EXPECT_EQ(address % huge, 0U);
  EXPECT_EQ(kernel.huge_asked, std::pair(address, 4 * huge));
  EXPECT_EQ(block.part(1).begin % huge, 0U);
  EXPECT_EQ(block.part(2).begin % huge, 0U);
}

TEST(RuntimeMemoryPolicy, FaultsSayWhatToDo) {
  FakeKernel kernel;
  const auto make = [&kernel](Layout layout, Pages pages) {
    return fault_of([&] { const Block block(kernel, 1 << 20, std::move(layout), pages); });
  };
  EXPECT_NE(make({kLocal, {1}}, Pages::normal).find("cpuset.mems"), std::string::npos);
  EXPECT_NE(make({kPartitioned, {0, 4}}, Pages::normal).find("node 4"), std::string::npos);
  EXPECT_NE(make({kPartitioned, {}}, Pages::normal).find("needs a rank"), std::string::npos);
  EXPECT_NE(make({kInterleaved, {}}, Pages::normal).find("needs a node"), std::string::npos);
  kernel.pool_error = ENOMEM;
  EXPECT_NE(make({kLocal, {0}}, Pages::huge2m).find("sysctl vm.nr_hugepages=N"), std::string::npos);
  EXPECT_NE(make({kLocal, {0}}, Pages::huge1g).find("hugepages-1048576kB/nr_hugepages"),
            std::string::npos);
  kernel.pool_error = EINVAL;
  EXPECT_NE(make({kLocal, {0}}, Pages::huge1g).find("has no huge pages of 1048576 KiB"),
            std::string::npos);
  kernel.huge_error = ENOTSUP;
  EXPECT_NE(make({kLocal, {0}}, Pages::transparent).find("echo madvise"), std::string::npos);
  kernel.huge_error = EINVAL;
  EXPECT_NE(make({kLocal, {0}}, Pages::transparent).find("this kernel has none"),
            std::string::npos);
}

TEST(RuntimeMemoryPolicy, WhereItIsForbiddenMemoryIsPlainAndTheUserIsTold) {
  FakeKernel kernel;
  for (const int error : {EPERM, ENOSYS}) {
    kernel.place_error = error;
    const Block block(kernel, 1 << 20, {kPartitioned, {0, 2}}, Pages::normal);
    block.data()[0] = std::byte{1};
    EXPECT_EQ(kernel.pages_with_policy(), 0U);
    EXPECT_NE(atl::runtime::why_unplaced(kernel), "");
  }
  kernel.place_error = EPERM;
  EXPECT_NE(atl::runtime::why_unplaced(kernel).find("CAP_SYS_NICE"), std::string::npos);
  kernel.single = true;  // nothing to choose
  EXPECT_EQ(atl::runtime::why_unplaced(kernel), "");
  kernel.single = false;
  kernel.place_error = 0;
  EXPECT_EQ(atl::runtime::why_unplaced(kernel), "");
}

TEST(RuntimeMemoryPolicy, WhatTheKernelDoesNotTellIsNotCalledUntouched) {
  FakeKernel kernel;
  const Block block(kernel, 10 * page_bytes(), {kLocal, {3}}, Pages::normal);
  kernel.touch(block.data(), 10 * page_bytes());
  kernel.look_error = EPERM;
  const atl::PagesFound found = block.found();
  EXPECT_EQ(found.unknown_bytes, 10 * page_bytes());
  EXPECT_EQ(found.absent_bytes, 0U);
  EXPECT_TRUE(found.bytes_by_node.empty());
}

struct Moving : testing::Test {
  static constexpr std::size_t kPages = 2000;  // parts of 1000: two slices each
  FakeKernel kernel;
  Block block{kernel, kPages * page_bytes(), {kPartitioned, {0, 2}}, Pages::normal};

  std::size_t pages(std::size_t bytes) const { return bytes / page_bytes(); }
};

TEST_F(Moving, OnlyWhatIsElsewhereMoves) {
  kernel.touch(block.data(), 1500 * page_bytes());
  const Rehomed done = block.rehome(std::vector<int>{0, 5}, {});
  EXPECT_EQ(pages(done.already_bytes), 1000U);
  EXPECT_EQ(pages(done.moved_bytes), 500U);
  EXPECT_EQ(pages(done.absent_bytes), 500U);
  EXPECT_EQ(pages(done.failed_bytes), 0U);
  EXPECT_FALSE(done.stopped);
  EXPECT_EQ(done.why, "");
  // Pages touched later also get the right node.
  kernel.touch(block.data(), kPages * page_bytes());
  const auto found = block.found().bytes_by_node;
  EXPECT_EQ(found,
            (std::map<int, std::size_t>{{0, 1000 * page_bytes()}, {5, 1000 * page_bytes()}}));
}

TEST_F(Moving, IsInSlicesAndStopsBetweenThem) {
  kernel.touch(block.data(), kPages * page_bytes());
  std::stop_source source;
  std::vector<std::size_t> seen;
  const Rehomed done =
      block.rehome(std::vector<int>{3, 3}, {source.get_token(), [&](auto& sums) {
                                              seen.push_back(pages(sums.moved_bytes));
                                              if (seen.size() == 3) source.request_stop();
                                            }});
  const std::size_t slice = (std::size_t{2} << 20) / page_bytes();
  EXPECT_EQ(seen, (std::vector<std::size_t>{slice, 1000, 1000 + slice}));
  EXPECT_EQ(pages(done.moved_bytes), 1000 + slice);
  EXPECT_TRUE(done.stopped);
  for (const std::size_t count : kernel.moves) EXPECT_LE(count, slice);
}

TEST_F(Moving, AFullNodeIsTheReasonAndOthersStillMove) {
  kernel.touch(block.data(), kPages * page_bytes());
  kernel.room[3] = 10;
  const Rehomed done = block.rehome(std::vector<int>{3, 5}, {});
  EXPECT_EQ(pages(done.moved_bytes), 1010U);
  EXPECT_EQ(pages(done.failed_bytes), 990U);
  EXPECT_NE(done.why.find("node 3: it is full"), std::string::npos) << done.why;
}

TEST_F(Moving, ABusyPageIsTriedAgainAndThenCounted) {
  kernel.touch(block.data(), kPages * page_bytes());
  kernel.busy.insert(FakeKernel::page_of(block.data()));
  const Rehomed done = block.rehome(std::vector<int>{3, 2}, {});
  EXPECT_EQ(pages(done.failed_bytes), 1U);
  EXPECT_NE(done.why.find("busy"), std::string::npos);
  EXPECT_EQ(std::count(kernel.moves.begin(), kernel.moves.end(), 1U), 2);
}

TEST_F(Moving, WhatTheKernelRefusesIsCountedWithItsReason) {
  kernel.touch(block.data(), kPages * page_bytes());
  EXPECT_NE(block.rehome(std::vector<int>{4, 2}, {}).why.find("node 4"), std::string::npos);
  kernel.move_error = EPERM;
  const Rehomed forbidden = block.rehome(std::vector<int>{2, 2}, {});
  EXPECT_EQ(pages(forbidden.failed_bytes), 1000U);
  EXPECT_EQ(pages(forbidden.already_bytes), 1000U);
  EXPECT_NE(forbidden.why.find("CAP_SYS_NICE"), std::string::npos);
  kernel.place_error = EPERM;
  EXPECT_EQ(pages(block.rehome(std::vector<int>{2, 0}, {}).failed_bytes), kPages);
  kernel.place_error = ENOSYS;  // without nodes nothing is elsewhere
  EXPECT_EQ(pages(block.rehome(std::vector<int>{2, 0}, {}).already_bytes), kPages);
}

TEST_F(Moving, AnotherNumberOfRanksIsAFault) {
  EXPECT_NE(fault_of([this] { block.rehome(std::vector<int>{0}, {}); }), "no fault");
}

TEST_F(Moving, AnAbandonedBlockIsLeftAlone) {
  kernel.touch(block.data(), kPages * page_bytes());
  const Rehomed done =
      block.rehome(std::vector<int>{5, 5}, {{}, [this](auto&) { block.abandon(); }});
  EXPECT_EQ(kernel.moves.size(), 1U);
  EXPECT_FALSE(done.stopped);
}

TEST(RuntimeMemoryRegistry, MovesTheLiveArraysOfOneRuntime) {
  FakeKernel kernel;
  atl::runtime::Registry registry;
  const auto make = [&](std::vector<int> ranks, int runtime) {
    auto block = std::make_shared<Block>(
        kernel, 10 * page_bytes(), Layout{kPartitioned, std::move(ranks), runtime}, Pages::normal);
    kernel.touch(block->data(), 10 * page_bytes());
    registry.add(block);
    return block;
  };
  const auto ours = make({0, 2}, 1);
  const auto also_ours = make({3, 2}, 1);
  const auto odd = make({3, 2, 2}, 1);
  const auto anothers = make({0, 2}, 2);
  make({0, 2}, 1);  // gone at once
  std::size_t last = 0;
  const Rehomed done =
      rehome_all(registry, NodeMap{kernel.nodes, {5, 2}, 1}, {{}, [&](auto& sums) {
                                                                EXPECT_GE(sums.moved_bytes, last);
                                                                last = sums.moved_bytes;
                                                              }});
  EXPECT_EQ(done.moved_bytes, 10 * page_bytes());
  EXPECT_EQ(last, done.moved_bytes);
  EXPECT_EQ(done.already_bytes, 10 * page_bytes());
  EXPECT_EQ(done.failed_bytes, odd->whole_bytes());
  EXPECT_NE(done.why.find("3 parts"), std::string::npos);
  EXPECT_EQ(ours->found().bytes_by_node.count(5), 1U);
  EXPECT_EQ(also_ours->found().bytes_by_node.count(3), 0U);
  EXPECT_EQ(anothers->found().bytes_by_node.count(5), 0U);
}

TEST(RuntimeMemoryChunks, PiecesAreAlignedApartAndUsedAgain) {
  FakeKernel kernel;
  atl::runtime::Chunks chunks(kernel, {kLocal, {5}});
  std::map<std::uintptr_t, std::size_t> taken;
  for (const std::size_t bytes : {1UL, 16UL, 1016UL, 32768UL, 32769UL, 122888UL, 5UL << 20}) {
    for (const std::size_t alignment : {1UL, 16UL, 4096UL, 32768UL}) {
      void* const at = chunks.allocate(bytes, alignment);
      const auto address = reinterpret_cast<std::uintptr_t>(at);
      EXPECT_EQ(address % alignment, 0U);
      EXPECT_EQ(kernel.policy_at(static_cast<std::byte*>(at) + bytes - 1).nodes,
                std::vector<int>{5});
      const auto next = taken.lower_bound(address);
      if (next != taken.end()) {
        EXPECT_LE(address + bytes, next->first);
      }
      if (next != taken.begin()) {
        EXPECT_LE(std::prev(next)->second, address);
      }
      taken[address] = address + bytes;
    }
  }
  void* const first = chunks.allocate(600, 8);
  void* const second = chunks.allocate(600, 8);
  chunks.deallocate(first, 600, 8);
  chunks.deallocate(second, 600, 8);
  EXPECT_EQ(chunks.allocate(600, 8), second);
  EXPECT_EQ(chunks.allocate(600, 8), first);
  EXPECT_THROW(static_cast<void>(chunks.allocate(std::size_t{1} << 62, 8)), std::bad_alloc);
  EXPECT_THROW(atl::runtime::Chunks(kernel, {kLocal, {1}}), RuntimeFault);
}

}  // namespace
