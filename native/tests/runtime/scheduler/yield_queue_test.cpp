// Yielded tasks come out in order and once each, and owner and thief are never inside together.

#include "scheduler/yield_queue.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <deque>
#include <random>
#include <thread>
#include <vector>

#include "fences.hpp"

namespace {

using atl::runtime::YieldQueue;
using Word = YieldQueue::Word;

constexpr unsigned kYieldSeed = 20011010;

bool any(Word) { return true; }

class YieldQueueTest : public atl::test::WithFences {};

TEST_P(YieldQueueTest, OfOneThreadIsAQueueOfTheStandardLibrary) {
  std::mt19937 random(kYieldSeed);
  YieldQueue ours;
  std::deque<Word> theirs;
  Word next = 1;
  auto pushes_of_ten = random() % 10;
  for (int step = 0; step < 20'000; ++step) {
    if (step % 500 == 0) pushes_of_ten = 2 + random() % 7;  // it grows, and runs empty
    if (random() % 10 < pushes_of_ten) {
      ours.push(next);
      theirs.push_back(next++);
    } else if (random() % 3 == 0) {
      const bool wanted = random() % 4 != 0;
      const Word taken = ours.begin_exchange(next, [&](Word) { return wanted; });
      ASSERT_EQ(taken, theirs.empty() || !wanted ? 0 : theirs.front()) << "step " << step;
      if (taken == 0) continue;
      ours.inside().store(false, std::memory_order_release);
      theirs.pop_front();
      theirs.push_back(next++);
    } else {
      ASSERT_EQ(ours.pop(), theirs.empty() ? 0 : theirs.front()) << "step " << step;
      if (!theirs.empty()) theirs.pop_front();
    }
    ASSERT_EQ(ours.size_hint(), theirs.size());
  }
}

TEST_P(YieldQueueTest, AThiefTakesTheOldestHalfAsFarAsItMayAndCan) {
  YieldQueue queue;
  std::array<Word, 4> into{};
  EXPECT_EQ(queue.steal(into, any), 0U);
  for (Word word = 1; word <= 5; ++word) queue.push(word);
  EXPECT_EQ(queue.steal(into, [](Word word) { return word == 1; }), 1U);
  EXPECT_EQ(into[0], 1U);
  EXPECT_EQ(queue.steal(into, [](Word word) { return word == 1; }), 0U);
  EXPECT_FALSE(queue.offers([](Word word) { return word == 1; }));
  EXPECT_TRUE(queue.offers(any));
  EXPECT_EQ(queue.steal(into, any), 2U);
  EXPECT_EQ(into[0], 2U);
  EXPECT_EQ(into[1], 3U);
  EXPECT_EQ(queue.steal(into, any), 1U);
  EXPECT_EQ(queue.steal(into, any), 1U) << "the half of one is one";
  EXPECT_EQ(into[0], 5U);
  EXPECT_FALSE(queue.offers(any));
  for (Word word = 1; word <= 20; ++word) queue.push(word);
  EXPECT_EQ(queue.steal(into, any), into.size());
  EXPECT_EQ(queue.pop(), 5U);
}

TEST_P(YieldQueueTest, AThiefPassesOverWordsThatItMayNotTake) {
  YieldQueue queue;
  std::array<Word, 4> into{};
  for (Word word = 1; word <= 7; ++word) queue.push(word);
  const auto even = [](Word word) { return word % 2 == 0; };
  EXPECT_TRUE(queue.offers(even));
  EXPECT_EQ(queue.steal(into, even), 3U);
  EXPECT_EQ(into, (std::array<Word, 4>{2, 4, 6, 0}));
  EXPECT_FALSE(queue.offers(even));
  for (const Word left : {1, 3, 5, 7}) EXPECT_EQ(queue.pop(), left);
}

TEST_P(YieldQueueTest, OneWordGoesNextApartFromTheOthers) {
  YieldQueue queue;
  EXPECT_EQ(queue.take_next(), 0U);
  EXPECT_EQ(queue.steal_next(any), 0U);
  queue.push(1);
  EXPECT_TRUE(queue.put_next(2));
  EXPECT_FALSE(queue.put_next(3)) << "there is one";
  EXPECT_TRUE(queue.offers_next(any));
  EXPECT_EQ(queue.size_hint(), 1U);
  EXPECT_EQ(queue.take_next(), 2U);
  EXPECT_EQ(queue.take_next(), 0U);
  EXPECT_TRUE(queue.put_next(3));
  const auto not_3 = [](Word word) { return word != 3; };
  EXPECT_FALSE(queue.offers_next(not_3));
  EXPECT_EQ(queue.steal_next(not_3), 0U);
  EXPECT_EQ(queue.steal_next(any), 3U);
  EXPECT_EQ(queue.pop(), 1U);
}

TEST_P(YieldQueueTest, TheWordThatGoesNextIsTakenOnce) {
  constexpr Word kWords = 4'000;
  YieldQueue queue;
  std::vector<std::atomic<int>> taken(kWords + 1);
  std::atomic<bool> over{false};
  std::vector<std::thread> thieves;
  for (int i = 0; i < 2; ++i) {
    thieves.emplace_back([&] {
      while (!over) {
        if (queue.offers_next(any)) ++taken[queue.steal_next(any)];
      }
    });
  }
  for (Word word = 1; word <= kWords;) {
    if (queue.put_next(word)) ++word;
    if (word % 3 != 0) ++taken[queue.take_next()];
  }
  ++taken[queue.take_next()];
  over = true;
  for (std::thread& thief : thieves) thief.join();
  for (Word word = 1; word <= kWords; ++word) ASSERT_EQ(taken[word], 1) << word;
}

TEST_P(YieldQueueTest, ASecondThiefIsShutOut) {
  YieldQueue queue;
  for (Word word = 1; word <= 4; ++word) queue.push(word);
  std::array<Word, 4> into{};
  std::array<Word, 4> seconds_into{};
  const auto while_inside = [&](Word) {
    EXPECT_EQ(queue.steal(seconds_into, any), 0U);
    EXPECT_FALSE(queue.offers([](Word) { return false; })) << "it looks without the lock";
    return true;
  };
  EXPECT_EQ(queue.steal(into, while_inside), 2U);
  EXPECT_EQ(queue.size_hint(), 2U);
}

TEST_P(YieldQueueTest, AnExchangeShutsThievesOutAndGivesWayToOneInside) {
  YieldQueue queue;
  std::array<Word, 4> into{};
  queue.push(1);
  EXPECT_EQ(queue.begin_exchange(2, any), 1U);
  EXPECT_EQ(queue.steal(into, any), 0U);
  EXPECT_FALSE(queue.offers([](Word) { return false; })) << "it looks without the lock";
  queue.inside().store(false, std::memory_order_release);
  const auto exchange_meanwhile = [&](Word) {
    EXPECT_EQ(queue.begin_exchange(3, any), 0U);
    return true;
  };
  EXPECT_EQ(queue.steal(into, exchange_meanwhile), 1U);
  EXPECT_EQ(into[0], 2U);
  EXPECT_EQ(queue.begin_exchange(4, any), 0U) << "there is nothing to take";
  EXPECT_EQ(queue.pop(), 0U);
}

TEST_P(YieldQueueTest, TheOwnerWaitsForAThiefInside) {
  YieldQueue queue;
  queue.push(1);
  std::array<Word, 1> into{};
  std::atomic<bool> comes{false};
  std::atomic<bool> pushed{false};
  bool inside_together = false;
  std::atomic<bool> thief_inside{false};
  std::thread owner([&] {
    while (!thief_inside.load()) std::this_thread::yield();
    comes = true;
    queue.push(2);
    pushed = true;
  });
  const auto while_inside = [&](Word) {
    thief_inside = true;
    while (!comes.load()) std::this_thread::yield();
    for (int times = 0; times < 200; ++times) std::this_thread::yield();
    while (queue.inside().load()) std::this_thread::yield();  // its flag does not turn thieves away
    inside_together = pushed.load();
    return true;
  };
  EXPECT_EQ(queue.steal(into, while_inside), 1U);
  owner.join();
  EXPECT_FALSE(inside_together);
  EXPECT_EQ(queue.pop(), 2U);
}

// A worker that is about to sleep looks from outside: a word that it does not see waits for
// another.
TEST_P(YieldQueueTest, AnExchangeNeverLooksLikeNothing) {
  constexpr int kLooks = 30'000'000;
  YieldQueue queue;
  queue.push(1);
  std::atomic<bool> done{false};
  int seen_empty = 0;
  std::thread sleeper([&] {
    for (int look = 0; look < kLooks; ++look) seen_empty += queue.size_hint() == 0 ? 1 : 0;
    done = true;
  });
  while (!done.load(std::memory_order_relaxed)) {
    EXPECT_EQ(queue.begin_exchange(1, any), 1U);
    queue.inside().store(false, std::memory_order_release);
  }
  sleeper.join();
  EXPECT_EQ(seen_empty, 0);
}

// Two inside at once would take a word twice.
TEST_P(YieldQueueTest, EachWordIsTakenOnceByOwnerOrThieves) {
  constexpr Word kWords = 20'000;
  constexpr int kThieves = 2;
  YieldQueue queue;
  std::vector<std::atomic<int>> taken(kWords + 1);
  std::atomic<int> started{0};
  std::atomic<bool> done{false};
  std::vector<std::thread> thieves;
  for (int thief = 0; thief < kThieves; ++thief) {
    thieves.emplace_back([&] {
      started.fetch_add(1);
      std::array<Word, 8> into{};
      while (!done.load(std::memory_order_relaxed)) {
        if (queue.size_hint() == 0) continue;
        const std::size_t count = queue.steal(into, any);
        for (std::size_t at = 0; at < count; ++at) taken[into[at]].fetch_add(1);
      }
    });
  }
  while (started.load() < kThieves) std::this_thread::yield();
  std::mt19937 random(kYieldSeed);
  const auto took = [&](Word word) { taken[word].fetch_add(word == 0 ? 0 : 1); };
  for (Word next = 1; next <= kWords; ++next) {
    if (random() % 2 == 0) {
      if (const Word oldest = queue.begin_exchange(next, any)) {
        took(oldest);
        queue.inside().store(false, std::memory_order_release);
        continue;
      }
      took(queue.pop());
    }
    queue.push(next);
  }
  done = true;
  for (std::thread& thief : thieves) thief.join();
  while (const Word word = queue.pop()) took(word);
  for (Word word = 1; word <= kWords; ++word) ASSERT_EQ(taken[word].load(), 1) << "word " << word;
}

INSTANTIATE_TEST_SUITE_P(Fences, YieldQueueTest, ::testing::Bool(), atl::test::fences_name);

}  // namespace
