// The deque returns each word once, from the right end, also while it grows and thieves steal.

#include "atoll/runtime/deque.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "scheduler/asymmetric_fence.hpp"

namespace {

using atl::detail::Deque;
using Word = Deque::Word;
using Steal = Deque::Steal;

constexpr unsigned kSeed = 20130217;

struct One {
  Steal outcome;
  Word word;
};

template <class Allowed>
One steal_one(Deque& deque, Allowed&& allowed) {
  Word word = 0;
  const Steal outcome = deque.steal({&word, 1}, allowed).outcome;
  return {outcome, outcome == Steal::got ? word : 0};
}
One steal_one(Deque& deque) {
  return steal_one(deque, [](Word) { return true; });
}

class DequeTest : public testing::Test {
 protected:
  DequeTest() { atl::runtime::choose_fences(); }
};

TEST_F(DequeTest, OfOneThreadIsADequeOfTheStandardLibrary) {
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
      } else if (random() % 4 == 0) {
        const Word expected = theirs.empty() ? 0 : theirs.front();
        if (!theirs.empty()) theirs.pop_front();
        ASSERT_EQ(ours.take_oldest(), expected) << "round " << round << ", step " << step;
      } else {
        const Word expected = theirs.empty() ? 0 : theirs.front();
        One stolen = steal_one(ours);
        if (stolen.outcome == Steal::hidden) {
          if (random() % 2 == 0) {
            ours.expose();
          } else {
            ours.force();
          }
          stolen = steal_one(ours);
        }
        ASSERT_EQ(stolen.outcome, theirs.empty() ? Steal::empty : Steal::got);
        ASSERT_EQ(stolen.word, expected) << "round " << round << ", step " << step;
        if (!theirs.empty()) theirs.pop_front();
      }
      ASSERT_EQ(ours.size_hint(), static_cast<std::int64_t>(theirs.size()));
      ASSERT_EQ(ours.looks_empty(), theirs.empty());
    }
  }
}

TEST_F(DequeTest, AThiefLeavesWhatItMayNotRun) {
  Deque deque;
  deque.push(1);
  deque.push(2);
  deque.expose();
  const auto even = [](Word word) { return word % 2 == 0; };
  EXPECT_FALSE(deque.offers(even));
  EXPECT_EQ(steal_one(deque, even).outcome, Steal::refused);
  EXPECT_EQ(steal_one(deque, even).word, 0U);
  EXPECT_EQ(deque.size_hint(), 2);
  EXPECT_EQ(steal_one(deque).word, 1U);
  EXPECT_TRUE(deque.offers(even)) << "though it is private";
  deque.expose();
  EXPECT_EQ(steal_one(deque, even).word, 2U);
  EXPECT_FALSE(deque.offers(even));
  EXPECT_EQ(steal_one(deque, even).outcome, Steal::empty);
  EXPECT_EQ(deque.pop(), 0U);
}

// Between the read of the word and the CAS, the owner takes it: the thief must not get it, too.
TEST_F(DequeTest, AWordTakenUnderTheThiefsEyesIsLost) {
  Deque deque;
  deque.push(7);
  deque.expose();
  Word owners = 0;
  const auto while_asked = [&](Word) {
    owners = deque.pop();
    return true;
  };
  EXPECT_EQ(steal_one(deque, while_asked).outcome, Steal::lost);
  EXPECT_EQ(owners, 7U);
  deque.push(8);
  deque.expose();
  const auto refuse_while_taken = [&](Word) {
    owners = deque.pop();
    return false;
  };
  // It refused a word that is gone, so the refusal means nothing.
  EXPECT_EQ(steal_one(deque, refuse_while_taken).outcome, Steal::lost);
}

// The slot is used again before the thief gets on, by as many pushes as there are slots.
TEST_F(DequeTest, ASlotUsedAgainIsNotTakenForTheOldWord) {
  Deque deque(2);
  deque.push(1);
  deque.push(2);
  deque.expose();
  One other{};
  const auto while_asked = [&](Word word) {
    EXPECT_EQ(word, 1U);
    other = steal_one(deque);
    deque.push(3);
    return true;
  };
  EXPECT_EQ(steal_one(deque, while_asked).outcome, Steal::lost);
  EXPECT_EQ(other.word, 1U);
  EXPECT_EQ(deque.take_oldest(), 2U);
  EXPECT_EQ(deque.take_oldest(), 3U);
}

// A thief that has read the old buffer takes its word from there.
TEST_F(DequeTest, GrowthDoesNotTakeTheBufferFromAThief) {
  Deque deque(2);
  deque.push(1);
  deque.push(2);
  deque.expose();
  const auto while_asked = [&](Word) {
    for (Word word = 3; word < 100; ++word) deque.push(word);
    return true;
  };
  EXPECT_EQ(steal_one(deque, while_asked).word, 1U);
  for (Word word = 99; word > 1; --word) ASSERT_EQ(deque.pop(), word);
  EXPECT_EQ(deque.pop(), 0U);
}

// ---- The split --------------------------------------------------------------------------------

TEST_F(DequeTest, WordsArePrivateUntilTheOwnerOrAThiefMakesHalfOfThemPublic) {
  const auto public_words = [](Deque& deque) {
    int words = 0;
    while (steal_one(deque).outcome == Steal::got) ++words;
    return words;
  };
  for (const bool forced : {false, true}) {
    Deque deque;
    const auto offer = [&] { forced ? deque.force() : deque.expose(); };
    offer();
    EXPECT_EQ(steal_one(deque).outcome, Steal::empty);
    for (Word word = 1; word <= 7; ++word) deque.push(word);
    EXPECT_EQ(steal_one(deque).outcome, Steal::hidden);
    EXPECT_FALSE(deque.looks_empty());
    EXPECT_TRUE(deque.offers([](Word) { return true; }));
    offer();
    offer();  // no more while there are some
    EXPECT_EQ(public_words(deque), 4);
    offer();
    EXPECT_EQ(public_words(deque), 2);
    offer();
    EXPECT_EQ(public_words(deque), 1) << "the last word, too";
    EXPECT_EQ(steal_one(deque).outcome, Steal::empty);
    EXPECT_EQ(deque.pop(), 0U);
  }
}

TEST_F(DequeTest, AThiefTakesHalfOfThePublicWordsButNoMoreThanItHasRoomFor) {
  Deque deque;
  for (Word word = 1; word <= 20; ++word) deque.push(word);
  deque.expose();  // 1 to 10
  std::array<Word, 4> words{};
  const auto all = [](Word) { return true; };
  EXPECT_EQ(deque.steal(words, all).count, 4U);
  EXPECT_EQ(words, (std::array<Word, 4>{1, 2, 3, 4}));
  EXPECT_EQ(deque.steal(words, all).count, 3U);
  EXPECT_EQ(words[2], 7U);
  EXPECT_EQ(deque.size_hint(), 13);
}

// The buffer is as full as it can be, so that what is taken back wraps around.
TEST_F(DequeTest, TheOwnerTakesPublicWordsBackInOrder) {
  for (Word stolen = 0; stolen <= 4; ++stolen) {
    Deque deque(8);
    for (Word word = 1; word <= 8; ++word) deque.push(word);
    deque.expose();  // 1 to 4
    for (Word word = 1; word <= stolen; ++word) ASSERT_EQ(steal_one(deque).word, word);
    for (Word word = 8; word > stolen; --word) {
      ASSERT_EQ(deque.size_hint(), static_cast<int>(word - stolen));
      ASSERT_EQ(deque.pop(), word) << stolen << " stolen";
      if (word % 2 == 0) deque.expose();
    }
    ASSERT_EQ(deque.pop(), 0U);
    for (Word word = 1; word <= 20; ++word) deque.push(word);
    for (Word word = 20; word > 0; --word) ASSERT_EQ(deque.pop(), word);
  }
}

TEST_F(DequeTest, PopFromTakesThatWordFromThatPlaceOnly) {
  Deque deque;
  const Deque::Index first = deque.push(1);
  const Deque::Index second = deque.push(2);
  EXPECT_FALSE(deque.pop_from(first, 1)) << "it is not the last";
  EXPECT_FALSE(deque.pop_from(second, 1)) << "it is not there";
  EXPECT_TRUE(deque.pop_from(second, 2));
  deque.expose();
  EXPECT_FALSE(deque.pop_from(first, 1)) << "it is public";
  EXPECT_EQ(deque.size_hint(), 1);
  EXPECT_EQ(deque.pop(), 1U);
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
        const One stolen = steal_one(deque);
        if (stolen.outcome == Steal::got) took(stolen.word);
        if (stolen.outcome == Steal::hidden) deque.force();
        if (stolen.outcome == Steal::empty && last_look) return;
      }
    });
  }
  while (started.load() < thieves) std::this_thread::yield();
  owner();
  done = true;
  for (std::thread& thread : threads) thread.join();
}

TEST_F(DequeTest, EachWordIsTakenOnceWhileItGrows) {
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
      if (random() % 2 == 0) deque.expose();
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
class LastWords : public DequeTest, public testing::WithParamInterface<bool> {};

TEST_P(LastWords, AreTakenOnce) {
  const bool exposed = GetParam();  // else the thieves have to force
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
      Deque::Index at = 0;
      for (Word count = 0; count < depth; ++count) {
        at = deque.push(++pushed);
        if (exposed) deque.expose();
      }
      if (pushed % 2 == 0 && deque.pop_from(at, pushed)) own_sum += pushed * pushed;
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

INSTANTIATE_TEST_SUITE_P(Deque, LastWords, testing::Bool(), [](const auto& info) {
  return std::string(info.param ? "Exposed" : "Forced");
});

}  // namespace
