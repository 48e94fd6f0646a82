// Exceptions and fibers: caught exceptions and those in flight belong to the fiber, not the thread.
#include <gtest/gtest.h>

#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "fiber_parts.hpp"

namespace atl::runtime {
namespace {

class Fibers : public testing::Test {
 protected:
  StackPool pool_{{}};
};

// What the running handler sees; "-" if nothing.
[[gnu::noinline]] std::string caught() {
  const std::exception_ptr current = std::current_exception();
  if (!current) return "-";
  try {
    std::rethrow_exception(current);
  } catch (const std::exception& fault) {
    return fault.what();
  }
}

[[gnu::noinline]] int in_flight() { return std::uncaught_exceptions(); }

// Suspends within a handler, and again within one inside it.
void nest(Routine& self, const std::string& name, std::vector<std::string>& seen) {
  try {
    throw std::runtime_error(name + " outer");
  } catch (const std::runtime_error& outer) {
    self.suspend();
    seen.push_back(caught());
    try {
      throw std::logic_error(name + " inner");
    } catch (const std::logic_error&) {
      self.suspend();
      seen.push_back(caught());
    }
    self.suspend();
    seen.push_back(caught());
    try {
      throw;
    } catch (const std::runtime_error& again) {
      self.suspend();
      EXPECT_STREQ(again.what(), outer.what());
    }
  }
  seen.push_back(caught());
}

TEST_F(Fibers, HandlersInterleave) {
  std::vector<std::string> a_seen;
  std::vector<std::string> b_seen;
  Routine a(pool_, [&](Routine& self) { nest(self, "a", a_seen); });
  Routine b(pool_, [&](Routine& self) { nest(self, "b", b_seen); });
  // a is ahead by one step, so the handlers open and close crosswise.
  a.resume();
  for (int i = 0; i < 4; ++i) {
    b.resume();
    EXPECT_EQ(caught(), "-");
    a.resume();
    EXPECT_EQ(caught(), "-");
  }
  b.resume();
  EXPECT_TRUE(a.done());
  EXPECT_TRUE(b.done());
  EXPECT_EQ(a_seen, (std::vector<std::string>{"a outer", "a inner", "a outer", "-"}));
  EXPECT_EQ(b_seen, (std::vector<std::string>{"b outer", "b inner", "b outer", "-"}));
}

TEST_F(Fibers, ResumedInsideAHandlerOfTheThread) {
  Routine routine(pool_, [](Routine& self) {
    EXPECT_EQ(caught(), "-");
    try {
      throw std::runtime_error("fiber");
    } catch (const std::runtime_error&) {
      self.suspend();
      EXPECT_EQ(caught(), "fiber");
    }
  });
  try {
    throw std::runtime_error("thread");
  } catch (const std::runtime_error&) {
    routine.resume();
    EXPECT_EQ(caught(), "thread");
  }
  EXPECT_EQ(caught(), "-");
  routine.resume();
  EXPECT_TRUE(routine.done());
}

struct SuspendsWhenUnwound {
  Routine& routine;
  std::vector<int>& seen;
  ~SuspendsWhenUnwound() {
    seen.push_back(in_flight());
    routine.suspend();
    seen.push_back(in_flight());
  }
};

TEST_F(Fibers, SuspendsWhileAnExceptionIsInFlight) {
  std::vector<int> seen;
  Routine routine(pool_, [&seen](Routine& self) {
    try {
      const SuspendsWhenUnwound unwound{self, seen};
      throw std::runtime_error("on its way");
    } catch (const std::runtime_error& fault) {
      EXPECT_STREQ(fault.what(), "on its way");
    }
    seen.push_back(in_flight());
  });
  routine.resume();
  EXPECT_EQ(in_flight(), 0);
  routine.resume();
  EXPECT_TRUE(routine.done());
  EXPECT_EQ(seen, (std::vector<int>{1, 1, 0}));
}

TEST_F(Fibers, ExceptionsMoveToAnotherThread) {
  std::vector<std::string> seen;
  std::vector<int> flying;
  Routine handler(pool_, [&](Routine& self) { nest(self, "moved", seen); });
  Routine unwinder(pool_, [&](Routine& self) {
    try {
      const SuspendsWhenUnwound unwound{self, flying};
      throw std::runtime_error("moved too");
    } catch (const std::runtime_error&) {
    }
    flying.push_back(in_flight());
  });
  handler.resume();
  unwinder.resume();
  std::thread([&] {
    handler.resume();
    unwinder.resume();
    EXPECT_EQ(caught(), "-");
    EXPECT_EQ(in_flight(), 0);
    handler.resume();
  }).join();
  handler.resume();
  handler.resume();
  EXPECT_TRUE(handler.done());
  EXPECT_TRUE(unwinder.done());
  EXPECT_EQ(seen, (std::vector<std::string>{"moved outer", "moved inner", "moved outer", "-"}));
  EXPECT_EQ(flying, (std::vector<int>{1, 1, 0}));
}

TEST_F(Fibers, ResetForgetsWhatItWasIn) {
  Fiber main = thread_fiber();
  Fiber* const fiber = pool_.take(0, [](void* passed) {
    auto** fibers = static_cast<Fiber**>(passed);
    switch_fiber(*fibers[1], *fibers[0], exception_globals(), nullptr);
    FAIL() << "went on where it was";
  });
  Fiber* fibers[] = {&main, fiber};
  switch_fiber(main, *fiber, exception_globals(), fibers);
  fiber->exceptions.uncaught = 3;  // as if it had been left while exceptions were in flight
  reset(*fiber, [](void* passed) {
    auto** both = static_cast<Fiber**>(passed);
    switch_fiber(*both[1], *both[0], exception_globals(), in_flight() == 0 ? passed : nullptr);
  });
  EXPECT_EQ(switch_fiber(main, *fiber, exception_globals(), fibers), fibers);
  pool_.give(fiber);
}

TEST_F(Fibers, ThreadFiberKnowsItsStack) {
  std::thread([] {
    const Fiber fiber = thread_fiber();
    const char here = 0;
    const auto* at = reinterpret_cast<const std::byte*>(&here);
#if !defined(__SANITIZE_ADDRESS__)  // which may keep `here` elsewhere
    EXPECT_GE(at, fiber.low);
    EXPECT_LT(at, fiber.top);
#else
    EXPECT_NE(at, nullptr);
#endif
    EXPECT_GT(fiber.bytes(), 16U << 10);
  }).join();
}

}  // namespace
}  // namespace atl::runtime
