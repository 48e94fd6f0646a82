// The queue that links what its words point to.

#include "scheduler/word_queue.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

namespace {

using atl::detail::Job;
using atl::detail::Word;
using atl::detail::word_of;
using atl::detail::WordKind;
using atl::runtime::Fiber;
using atl::runtime::WordQueue;

TEST(WordQueue, GivesJobsAndFibersInTheirOrder) {
  WordQueue queue;
  EXPECT_TRUE(queue.looks_empty());
  EXPECT_EQ(queue.pop(), 0U);
  std::array<Job, 3> jobs{};
  std::array<Fiber, 2> fibers{};
  const std::array words{
      word_of(&jobs[0], WordKind::job, 0), word_of(&fibers[0], WordKind::fiber, Word{7} << 48),
      word_of(&jobs[1], WordKind::scope_child, 0), word_of(&fibers[1], WordKind::fiber, 0),
      word_of(&jobs[2], WordKind::job, Word{1} << 48)};
  queue.push(words[0]);
  queue.push(words[1]);
  EXPECT_FALSE(queue.looks_empty());
  EXPECT_EQ(queue.pop(), words[0]);
  for (std::size_t at = 2; at < words.size(); ++at) queue.push(words[at]);
  for (std::size_t at = 1; at < words.size(); ++at) {
    EXPECT_FALSE(queue.looks_empty());
    EXPECT_EQ(queue.pop(), words[at]);
  }
  EXPECT_TRUE(queue.looks_empty());
  for (const Job& job : jobs) EXPECT_EQ(job.link, 0U);
}

struct Numbered : Job {
  int producer = 0;
  int number = 0;
};

TEST(WordQueue, LosesNothingAmongProducersAndConsumers) {
  static constexpr int kProducers = 2;
  static constexpr int kConsumers = 2;
  static constexpr int kJobs = 5000;
  WordQueue queue;
  std::vector<std::vector<Numbered>> jobs(kProducers, std::vector<Numbered>(kJobs));
  std::atomic<int> taken{0};
  std::atomic<int> out_of_order{0};
  std::vector<std::thread> threads;
  for (int producer = 0; producer < kProducers; ++producer) {
    threads.emplace_back([&, producer] {
      int number = 0;
      for (Numbered& job : jobs[static_cast<std::size_t>(producer)]) {
        job.producer = producer;
        job.number = ++number;
        queue.push(word_of(&job, WordKind::job, 0));
      }
    });
  }
  for (int consumer = 0; consumer < kConsumers; ++consumer) {
    threads.emplace_back([&] {
      std::array<int, kProducers> seen{};  // what one consumer takes of one producer only grows
      while (taken.load() < kProducers * kJobs) {
        const Word word = queue.pop();
        if (word == 0) {
          std::this_thread::yield();
          continue;
        }
        const auto& job = *static_cast<Numbered*>(static_cast<Job*>(atl::detail::pointer_of(word)));
        int& before = seen[static_cast<std::size_t>(job.producer)];
        if (job.number <= before) ++out_of_order;
        before = job.number;
        ++taken;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taken.load(), kProducers * kJobs);
  EXPECT_EQ(out_of_order.load(), 0);
  EXPECT_TRUE(queue.looks_empty());
}

}  // namespace
