// The memory of jobs: blocks that one worker makes and another frees come back to the first.
#include "atoll/runtime/detail/job_memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <thread>
#include <vector>

#include "atoll/runtime/task.hpp"

namespace {

using atl::detail::JobMemory;

constexpr std::size_t kBlocks = 10 * JobMemory::kBatch;
constexpr std::size_t kBytes = 3 * JobMemory::kLine;

std::vector<void*> take(JobMemory& from) {
  std::vector<void*> blocks;
  for (std::size_t i = 0; i < kBlocks; ++i) blocks.push_back(from.take(kBytes));
  return blocks;
}

// What is not a multiple of a line, too, is aligned as far as its size allows.
TEST(JobMemory, BlocksDifferAndAreAlignedAsTheirSizesAre) {
  for (std::size_t bytes = 2 * JobMemory::kStep; bytes <= 2 * JobMemory::kLargest; bytes *= 2) {
    for (const std::size_t size : {bytes, bytes + bytes / 2}) {
      JobMemory worker;
      std::set<std::uintptr_t> begins;
      for (std::size_t i = 0; i < kBlocks; ++i) {
        begins.insert(reinterpret_cast<std::uintptr_t>(worker.take(size)));
      }
      EXPECT_EQ(begins.size(), kBlocks);
      std::uintptr_t end = 0;
      for (const std::uintptr_t begin : begins) {
        EXPECT_GE(begin, end) << "two overlap";
        end = begin + size;
        EXPECT_EQ(begin % std::min(JobMemory::kLine, size & ~(size - 1)), 0U);
        worker.give(reinterpret_cast<void*>(begin), size);
      }
    }
  }
}

// Under AddressSanitizer blocks come from malloc.
#ifndef __SANITIZE_ADDRESS__
TEST(JobMemory, WhatAnotherWorkerFreesIsUsedAgain) {
  JobMemory maker;
  JobMemory ender;
  std::set<void*> seen;
  for (int round = 0; round < 10; ++round) {
    for (void* const block : take(maker)) {
      seen.insert(block);
      ender.give(block, kBytes);
    }
  }
  // What the second keeps, and what the first has of its last batch.
  EXPECT_LE(seen.size(), kBlocks + 3 * JobMemory::kBatch);
}

TEST(JobMemory, WhatAThreadOrAnEndedWorkerFreesIsUsedAgain) {
  std::set<void*> seen;
  for (int round = 0; round < 10; ++round) {
    JobMemory maker;
    std::vector<void*> blocks = take(maker);
    blocks.push_back(JobMemory::allocate(kBytes));
    for (void* const block : blocks) {
      seen.insert(block);
      JobMemory::free(block, kBytes);
    }
  }
  EXPECT_LE(seen.size(), kBlocks + 1 + 3 * JobMemory::kBatch);
}
#endif

TEST(JobMemory, WorkersExchangeBlocksAtOnce) {
  std::vector<std::thread> threads;
  for (int id = 0; id < 4; ++id) {
    threads.emplace_back([id] {
      JobMemory worker;
      for (int round = 0; round < 20; ++round) {
        const std::vector<void*> blocks = take(worker);
        for (void* const block : blocks) *static_cast<int*>(block) = id;
        for (void* const block : blocks) {
          EXPECT_EQ(*static_cast<int*>(block), id);
          if (round % 2 == 0) {
            worker.give(block, kBytes);
          } else {
            JobMemory::free(block, kBytes);
          }
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// A spawn, the task and its join write to that line only.
TEST(JobMemory, ATaskThatCapturesAReferenceAndReturnsNothingIsALine) {
  int times = 0;
  const auto function = [&times] { ++times; };
  EXPECT_EQ(sizeof(atl::detail::TaskFor<decltype(function)>), JobMemory::kLine);
}

}  // namespace
