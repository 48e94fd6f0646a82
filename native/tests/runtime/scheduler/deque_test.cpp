// The deque returns each word once, from the right end, also while it grows and thieves steal.

#include "atoll/runtime/deque.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <random>
#include <thread>
#include <vector>

namespace {

using atl::detail::Deque;
using Word = Deque::Word;
using Steal = Deque::Steal;

constexpr unsigned kSeed = 20130217;

TEST(Deque, OfOneThreadIsADequeOfTheStandardLibrary) {
  std::mt19937 random(kSeed);
  for (int round = 0; round < 50; ++round) {
    Deque ours(2);
    std::deque<Word> theirs;
    Word next = 1;
    // The odds change, so that it grows, wraps around and runs empty.
    auto pushes_of_ten = random() % 10;
    for (int step = 0; step < 2000; ++step) {
      if (step % 200 == 0) pushes_of_ten = 2 + random() % 7;
      if (random() % 10 < pushes_of_ten) {
        ours.push(next);
        theirs.push_back(next++);
      } else if (random() % 2 == 0) {
        const Word expected = theirs.empty() ? 0 : theirs.back();
        if (!theirs.empty()) theirs.pop_back();
        ASSERT_EQ(ours.pop(), expected) << "round " << round << ", step " << step;
      } else {
        const Word expected = theirs.empty() ? 0 : theirs.front();
        const Deque::Stolen stolen = ours.steal();
        ASSERT_EQ(stolen.outcome, theirs.empty() ? Steal::empty : Steal::got);
        ASSERT_EQ(stolen.word, expected) << "round " << round << ", step " << step;
        if (!theirs.empty()) theirs.pop_front();
      }
      ASSERT_EQ(ours.size_hint(), static_cast<std::int64_t>(theirs.size()));
      ASSERT_EQ(ours.looks_empty(), theirs.empty());
    }
  }
}

TEST(Deque, AThiefLeavesWhatItMayNotRun) {
  Deque deque;
  deque.push(1);
  deque.push(2);
  const auto even = [](Word word) { return word % 2 == 0; };
  EXPECT_FALSE(deque.offers(even));
  EXPECT_EQ(deque.steal(even).outcome, Steal::refused);
  EXPECT_EQ(deque.steal(even).word, 0U);
  EXPECT_EQ(deque.size_hint(), 2);
  EXPECT_EQ(deque.steal().word, 1U);
  EXPECT_TRUE(deque.offers(even));
  EXPECT_EQ(deque.steal(even).word, 2U);
  EXPECT_FALSE(deque.offers(even));
  EXPECT_EQ(deque.steal(even).outcome, Steal::empty);
  EXPECT_EQ(deque.pop(), 0U);
}

// Between the read of the word and the CAS, the owner takes it: the thief must not get it, too.
TEST(Deque, AWordTakenUnderTheThiefsEyesIsLost) {
  Deque deque;
  deque.push(7);
  Word owners = 0;
  const auto while_asked = [&](Word) {
    owners = deque.pop();
    return true;
  };
  EXPECT_EQ(deque.steal(while_asked).outcome, Steal::lost);
  EXPECT_EQ(owners, 7U);
  deque.push(8);
  const auto refuse_while_taken = [&](Word) {
    owners = deque.pop();
    return false;
  };
  // It refused a word that is gone, so the refusal means nothing.
  EXPECT_EQ(deque.steal(refuse_while_taken).outcome, Steal::lost);
}

// The slot is used again before the thief gets on, by as many pushes as there are slots.
TEST(Deque, ASlotUsedAgainIsNotTakenForTheOldWord) {
  Deque deque(2);
  deque.push(1);
  deque.push(2);
  Deque::Stolen other{};
  const auto while_asked = [&](Word word) {
    EXPECT_EQ(word, 1U);
    other = deque.steal();
    deque.push(3);
    return true;
  };
  EXPECT_EQ(deque.steal(while_asked).outcome, Steal::lost);
  EXPECT_EQ(other.word, 1U);
  EXPECT_EQ(deque.steal().word, 2U);
  EXPECT_EQ(deque.steal().word, 3U);
}

// A thief that has read the old buffer takes its word from there.
TEST(Deque, GrowthDoesNotTakeTheBufferFromAThief) {
  Deque deque(2);
  deque.push(1);
  deque.push(2);
  const auto while_asked = [&](Word) {
    for (Word word = 3; word < 100; ++word) deque.push(word);
    return true;
  };
  EXPECT_EQ(deque.steal(while_asked).word, 1U);
  for (Word word = 99; word > 1; --word) ASSERT_EQ(deque.pop(), word);
  EXPECT_EQ(deque.pop(), 0U);
}

// Runs `owner` while thieves steal and call `took`; they stop once it is done and all is taken.
template <class Owner, class Took>
void with_thieves(Deque& deque, int thieves, Took&& took, Owner&& owner) {
  std::atomic<int> started{0};
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int thief = 0; thief < thieves; ++thief) {
    threads.emplace_back([&] {
      started.fetch_add(1);
      for (;;) {
        const bool last_look = done.load();
        const Deque::Stolen stolen = deque.steal();
        if (stolen.outcome == Steal::got) took(stolen.word);
        if (stolen.outcome == Steal::empty && last_look) return;
      }
    });
  }
  while (started.load() < thieves) std::this_thread::yield();
  owner();
  done = true;
  for (std::thread& thread : threads) thread.join();
}

TEST(Deque, EachWordIsTakenOnceWhileItGrows) {
  constexpr Word kWords = 100'000;
  Deque deque(2);
  // A word stands for plain memory, so TSan detects a missing publication.
  std::vector<Word> content(kWords + 1);
  std::vector<std::atomic<int>> taken(kWords + 1);
  std::atomic<int> wrong{0};
  const auto took = [&](Word word) {
    if (content[word] != word) wrong.fetch_add(1);
    taken[word].fetch_add(1);
  };
  with_thieves(deque, 3, took, [&] {
    std::mt19937 random(kSeed);
    Word next = 1;
    while (next <= kWords) {
      // Bursts: it grows under the thieves' hands, then runs low.
      for (auto burst = random() % 200; burst > 0 && next <= kWords; --burst) {
        content[next] = next;
        deque.push(next++);
      }
      for (auto burst = random() % 150; burst > 0; --burst) {
        if (const Word word = deque.pop()) took(word);
      }
    }
  });
  EXPECT_EQ(wrong.load(), 0);
  for (Word word = 1; word <= kWords; ++word) ASSERT_EQ(taken[word].load(), 1) << word;
}

// One to three words at a time, so that owner and thieves meet at the last ones all the time: for
// as many words as it takes until the thieves had some of them, within bounds.
TEST(Deque, TheLastWordsAreTakenOnce) {
  constexpr Word kWords = 400'000;
  constexpr int kEnoughStolen = 20'000;
  Deque deque(4);
  std::atomic<int> stolen{0};
  std::atomic<Word> sum{0};
  Word pushed = 0;
  Word own_sum = 0;
  const auto took = [&](Word word) {
    stolen.fetch_add(1, std::memory_order_relaxed);
    sum.fetch_add(word * word, std::memory_order_relaxed);
  };
  with_thieves(deque, 2, took, [&] {
    while (pushed < kWords && stolen.load(std::memory_order_relaxed) < kEnoughStolen) {
      const Word depth = 1 + pushed % 4 % 3;
      for (Word count = 0; count < depth; ++count) deque.push(++pushed);
      for (Word count = 0; count < depth; ++count) {
        const Word word = deque.pop();
        own_sum += word * word;
      }
    }
  });
  // Squares, so that what is missing and what is there twice do not cancel each other.
  Word expected = 0;
  for (Word word = 1; word <= pushed; ++word) expected += word * word;
  EXPECT_EQ(own_sum + sum.load(), expected) << stolen.load() << " of " << pushed << " stolen";
}

}  // namespace
