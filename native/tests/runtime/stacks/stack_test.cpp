// The pool of stacks: geometry, reuse, nodes, limits, trimming.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "atoll/runtime/places.hpp"
#include "fiber_parts.hpp"

namespace atl::runtime {
namespace {

constexpr GuardSupport kByMprotect{.install = false, .map_limit = 4096};

void never(void*) { std::abort(); }

std::string fault_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const RuntimeFault& fault) {
    return fault.what();
  }
  return "no fault";
}

std::size_t resident_pages(const std::byte* low, const std::byte* high) {
  std::vector<unsigned char> pages(static_cast<std::size_t>(high - low) / page_bytes());
  if (mincore(const_cast<std::byte*>(low), pages.size() * page_bytes(), pages.data()) != 0)
    return 0;
  return static_cast<std::size_t>(std::count_if(
      pages.begin(), pages.end(), [](unsigned char page) { return (page & 1) != 0; }));
}

struct Case {
  const char* name;
  StackKind kind;
  bool mprotect;
};

class Stacks : public testing::TestWithParam<Case> {
 protected:
  StackPool make(std::size_t bytes = std::size_t{64} << 10, std::vector<int> nodes = {}) {
    const GuardSupport support = GetParam().mprotect ? kByMprotect : guard_support();
    return StackPool({.kind = GetParam().kind, .bytes = bytes}, nodes, support);
  }
};

TEST_P(Stacks, EveryByteIsTheirsAlone) {
  StackPool pool = make();
  std::vector<Fiber*> fibers;
  for (int i = 0; i < 20; ++i) fibers.push_back(pool.take(0, &never));
  for (std::size_t i = 0; i < fibers.size(); ++i) {
    EXPECT_EQ(fibers[i]->top, reinterpret_cast<std::byte*>(fibers[i]));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(fibers[i]->top) % 64, 0U);
    EXPECT_GE(fibers[i]->bytes(), (64U << 10) - 2 * page_bytes());
    std::memset(fibers[i]->low, static_cast<int>(i + 1), fibers[i]->bytes());
  }
  for (std::size_t i = 0; i < fibers.size(); ++i) {
    const auto value = static_cast<std::byte>(i + 1);
    EXPECT_TRUE(std::all_of(fibers[i]->low, fibers[i]->top,
                            [value](std::byte byte) { return byte == value; }));
    pool.give(fibers[i]);
  }
}

TEST_P(Stacks, ComesBackParkedWhereItStood) {
  StackPool pool = make();
  int runs = 0;
  const Fiber* first = nullptr;
  for (int i = 0; i < 3; ++i) {
    Routine routine(pool, [&runs](Routine&) { ++runs; });
    routine.resume();
    EXPECT_TRUE(routine.done());
    if (first == nullptr) first = &routine.fiber();
    EXPECT_EQ(&routine.fiber(), first);
  }
  EXPECT_EQ(runs, 3);
  EXPECT_EQ(pool.counts().made, 1U);
}

TEST_P(Stacks, Counts) {
  StackPool pool = make();
  std::array<Fiber*, 3> fibers{};
  for (Fiber*& fiber : fibers) fiber = pool.take(0, &never);
  pool.give(fibers[0]);
  StackCounts counts = pool.counts();
  EXPECT_EQ(counts.live, 2U);
  EXPECT_EQ(counts.peak, 3U);
  EXPECT_EQ(counts.made, 3U);
  EXPECT_GE(counts.mapped_bytes, 3U * (64U << 10));
  EXPECT_EQ(pool.take(0, &never), fibers[0]);
  for (Fiber* fiber : fibers) pool.give(fiber);
  counts = pool.counts();
  EXPECT_EQ(counts.live, 0U);
  EXPECT_EQ(counts.peak, 3U);
}

TEST_P(Stacks, TrimGivesBackAllButTheTopPage) {
  StackPool pool = make(std::size_t{256} << 10);
  {
    Routine deep(pool, [](Routine&) {
      volatile char space[128 << 10];
      for (std::size_t i = 0; i < sizeof space; i += 1024) space[i] = 1;
    });
    Routine other(pool, [](Routine&) {});
    deep.resume();
    other.resume();
  }
  Fiber* const deep = pool.take(0, &never);  // the last that was given back
  pool.give(deep);
  const auto page_start = [](std::byte* at) {
    return at - reinterpret_cast<std::uintptr_t>(at) % page_bytes();
  };
  const std::byte* const low = page_start(deep->low + page_bytes() - 1);
  const std::byte* const high = page_start(deep->top);
  const std::size_t before = resident_pages(low, high);
  EXPECT_EQ(pool.trim(2), 0U);
  EXPECT_EQ(resident_pages(low, high), before);
  EXPECT_EQ(pool.trim(0), 2U);
  EXPECT_EQ(pool.trim(0), 0U) << "trimmed twice";
  // Sanitizers' frames are larger, so that more than one page is in use.
  EXPECT_LE(resident_pages(low, high), 2U);
  EXPECT_GE(before, 30U);
  // The parked fiber still works.
  int runs = 0;
  Routine again(pool, [&runs](Routine&) { ++runs; });
  again.resume();
  EXPECT_EQ(runs, 1);
}

TEST_P(Stacks, NodesHaveListsOfTheirOwn) {
  StackPool pool = make(std::size_t{64} << 10, {0, 1, 5});
  Fiber* const on_one = pool.take(1, &never);
  Fiber* const on_five = pool.take(5, &never);
  EXPECT_EQ(on_one->node, 1);
  EXPECT_EQ(on_five->node, 5);
  EXPECT_EQ(pool.take(7, &never)->node, 0) << "an unknown node";
  pool.give(on_five);
  EXPECT_NE(pool.take(1, &never), on_five);
  EXPECT_EQ(pool.take(5, &never), on_five);
}

TEST_P(Stacks, ThreadsShareAPool) {
  StackPool pool = make();
  std::atomic<int> runs{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        Routine a(pool, [&](Routine& self) {
          self.suspend();
          ++runs;
        });
        Routine b(pool, [&](Routine&) { ++runs; });
        a.resume();
        b.resume();
        a.resume();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(runs, 400);
  EXPECT_EQ(pool.counts().live, 0U);
  EXPECT_LE(pool.counts().made, 8U);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Stacks,
                         testing::Values(Case{"guarded", StackKind::guarded, false},
                                         Case{"mprotect", StackKind::guarded, true},
                                         Case{"slab", StackKind::slab, false}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(StackPoolTest, HundredThousandLiveFibers) {
#if defined(ATL_RT_TSAN)
  constexpr std::size_t kFibers = 1'000;  // TSan knows 8,128 threads and fibers
#elif defined(ATL_RT_ASAN)
  constexpr std::size_t kFibers = 5'000;
#else
  constexpr std::size_t kFibers = 100'000;
#endif
  // Without MADV_GUARD_INSTALL this many guards exceed the limit on mappings.
  const StackKind kind = guard_support().install ? StackKind::guarded : StackKind::slab;
  StackPool pool({.kind = kind});
  std::size_t finished = 0;
  std::vector<std::unique_ptr<Routine>> routines;
  for (std::size_t i = 0; i < kFibers; ++i) {
    routines.push_back(std::make_unique<Routine>(pool, [&finished](Routine& self) {
      self.suspend();
      ++finished;
    }));
    routines.back()->resume();
  }
  EXPECT_EQ(pool.counts().live, kFibers);
#if !defined(ATL_RT_TSAN) && !defined(ATL_RT_ASAN) && defined(NDEBUG)
  // A suspended fiber with small frames keeps one page.
  Fiber& fiber = routines[kFibers / 2]->fiber();
  EXPECT_GT(static_cast<std::byte*>(fiber.context.sp), fiber.top - page_bytes() / 2);
#endif
  for (auto& routine : routines) routine->resume();
  EXPECT_EQ(finished, kFibers);
}

// What a million tasks that wait cost: neither a second page nor a mapping of its own for each.
TEST(StackPoolTest, ASlabStackTakesOnePageAndNoMapping) {
  const auto mappings = [] {
    std::ifstream maps("/proc/self/maps");
    return std::count(std::istreambuf_iterator<char>(maps), {}, '\n');
  };
#if defined(ATL_RT_TSAN)
  constexpr std::size_t kFibers = 4'000;  // and it makes some mappings itself
#else
  constexpr std::size_t kFibers = 20'000;
#endif
  const auto before = mappings();
  StackPool pool({.kind = StackKind::slab, .bytes = std::size_t{16} << 10});
  std::vector<Fiber*> fibers;
  for (std::size_t i = 0; i < kFibers; ++i) fibers.push_back(pool.take(0, &never));
  EXPECT_LE(mappings() - before, static_cast<std::ptrdiff_t>(kFibers / 100));
  constexpr std::size_t kLooked = 100;
  std::size_t pages = 0;
  for (std::size_t i = 0; i < kLooked; ++i) {
    pages += resident_pages(fibers[i]->low, fibers[i + 1]->low);
  }
  EXPECT_EQ(pages, kLooked);
  for (Fiber* const fiber : fibers) pool.give(fiber);
}

TEST(StackPoolTest, LimitOnMappingsIsAFault) {
  // An edge below the first stack, then one above each: two mappings an edge.
  GuardSupport limited{.install = false, .map_limit = 10};
  StackPool pool({}, {}, limited);
  std::vector<Fiber*> fibers;
  for (int i = 0; i < 4; ++i) fibers.push_back(pool.take(0, &never));
  const std::string fault = fault_of([&] { pool.take(0, &never); });
  EXPECT_NE(fault.find("vm.max_map_count"), std::string::npos) << fault;
  EXPECT_NE(fault.find("StackOptions::Kind::slab"), std::string::npos) << fault;
  EXPECT_EQ(pool.counts().live, 4U);
  // The pool goes on with what it has.
  pool.give(fibers[2]);
  EXPECT_EQ(pool.take(0, &never), fibers[2]);
}

TEST(StackPoolTest, BorrowsFromAnotherNodeAtTheLimit) {
  GuardSupport limited{.install = false, .map_limit = 6};
  const std::array<int, 2> nodes{0, 1};
  StackPool pool({}, nodes, limited);
  Fiber* const first = pool.take(0, &never);
  Fiber* const second = pool.take(0, &never);
  pool.give(first);
  EXPECT_EQ(pool.take(1, &never), first);
  EXPECT_THROW(pool.take(1, &never), RuntimeFault);
  pool.give(second);
}

TEST(StackPoolTest, LimitIsGivenBackWithThePool) {
  GuardSupport limited{.install = false, .map_limit = 4};
  for (int i = 0; i < 3; ++i) {
    StackPool pool({}, {}, limited);
    EXPECT_NE(pool.take(0, &never), nullptr);
  }
}

TEST(StackPoolTest, RefusesSizesThatCannotBe) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{4096}, ~std::size_t{0}}) {
    const std::string fault = fault_of([bytes] { StackPool pool({.bytes = bytes}); });
    EXPECT_NE(fault.find("StackOptions.bytes"), std::string::npos) << fault;
  }
}

TEST(StackPoolTest, GuardPagesAreFoundAndNothingElse) {
  std::byte* guard = nullptr;
  {
    StackPool pool({.bytes = std::size_t{64} << 10});
    Fiber* const first = pool.take(0, &never);
    Fiber* const second = pool.take(0, &never);
    guard = first->low - 1;
    for (Fiber* fiber : {first, second}) {
      EXPECT_FALSE(find_guard(fiber->low));
      EXPECT_FALSE(find_guard(fiber->top));
      const auto below = find_guard(fiber->low - 1);
      ASSERT_TRUE(below);
      EXPECT_EQ(below->high, fiber->low);
      EXPECT_EQ(below->stack_bytes, 64U << 10);
      EXPECT_TRUE(find_guard(fiber->low + below->stack_bytes)) << "above";
    }
    EXPECT_FALSE(find_guard(&pool));
    EXPECT_FALSE(find_guard(nullptr));
  }
  EXPECT_FALSE(find_guard(guard)) << "of a pool that is gone";
}

}  // namespace
}  // namespace atl::runtime
