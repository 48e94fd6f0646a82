// Threads that call DuckDB: bound for the time of the call, alone or several, and given back.
#include "callers.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <latch>
#include <thread>

#include "runtime/parts.hpp"
#include "scheduler/affinity.hpp"

namespace {

using atl::duckdb::Callers;
using atl::runtime::cpus_of_this_thread;
using atl::test::real_cpus;
using Cpus = std::vector<int>;

class CallersTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_GE(before.size(), 2U) << "needs two CPUs to tell one from all"; }
  const Cpus before = real_cpus();
  const Cpus one = {before[0]};
  const Cpus both = {before[0], before[1]};
  Callers callers;
};

TEST_F(CallersTest, AloneOnItsSeatAndBackAgain) {
  callers.seat(one, both);
  callers.enter();
  EXPECT_EQ(cpus_of_this_thread(), one);
  ASSERT_EQ(callers.now().size(), 1U);
  EXPECT_EQ(callers.now()[0].tid, atl::runtime::this_thread());
  EXPECT_EQ(callers.now()[0].cpus, one);
  callers.leave();
  EXPECT_EQ(cpus_of_this_thread(), before);
  EXPECT_TRUE(callers.now().empty());
}

TEST_F(CallersTest, ACallWithinACallIsNotTheEndOfIt) {
  callers.seat(one, both);
  callers.enter();
  callers.enter();
  callers.leave();
  EXPECT_EQ(cpus_of_this_thread(), one);
  callers.leave();
  EXPECT_EQ(cpus_of_this_thread(), before);
}

TEST_F(CallersTest, SeveralShareAllSeatsAndTheLastHasItsOwn) {
  callers.seat(one, both);
  callers.enter();
  std::latch inside(1), go(1);
  Cpus of_other;
  std::thread other([&] {
    callers.enter();
    of_other = cpus_of_this_thread();
    inside.count_down();
    go.wait();
    callers.leave();
  });
  inside.wait();
  EXPECT_EQ(of_other, both);
  EXPECT_EQ(cpus_of_this_thread(), both);
  go.count_down();
  other.join();
  EXPECT_EQ(cpus_of_this_thread(), one);
  callers.leave();
  EXPECT_EQ(cpus_of_this_thread(), before);
}

TEST_F(CallersTest, WhoIsInsideMovesAlong) {
  callers.seat(one, both);
  callers.enter();
  callers.seat({before[1]}, both);
  EXPECT_EQ(cpus_of_this_thread(), Cpus{before[1]});
  callers.seat({}, {});  // unbound: as it came
  EXPECT_EQ(cpus_of_this_thread(), before);
  EXPECT_TRUE(callers.now()[0].cpus.empty());
  callers.seat(one, both);
  EXPECT_EQ(cpus_of_this_thread(), one);
  callers.leave();
  EXPECT_EQ(cpus_of_this_thread(), before);
}

TEST_F(CallersTest, AMaskFromOutsideDuringACallIsItsOwnThen) {
  const Cpus other = {before[1]};
  callers.seat(one, both);
  callers.enter();
  ASSERT_TRUE(atl::runtime::bind_thread(atl::runtime::this_thread(), other));
  callers.leave();
  EXPECT_EQ(cpus_of_this_thread(), other);

  ASSERT_TRUE(atl::runtime::bind_thread(atl::runtime::this_thread(), before));
  callers.enter();
  ASSERT_TRUE(atl::runtime::bind_thread(atl::runtime::this_thread(), other));
  callers.seat(one, both);  // the governor has seen it, too
  EXPECT_EQ(cpus_of_this_thread(), one);
  callers.leave();
  EXPECT_EQ(cpus_of_this_thread(), other);
  ASSERT_TRUE(atl::runtime::bind_thread(atl::runtime::this_thread(), before));
}

TEST_F(CallersTest, UnboundNobodyIsTouched) {
  callers.enter();
  EXPECT_EQ(cpus_of_this_thread(), before);
  callers.leave();
  EXPECT_EQ(cpus_of_this_thread(), before);
}

TEST_F(CallersTest, CpusThatCannotBeHadLeaveItWhereItIs) {
  callers.seat({8191}, {8191});
  callers.enter();
  EXPECT_EQ(cpus_of_this_thread(), before);
  EXPECT_TRUE(callers.now()[0].cpus.empty());
  callers.leave();
  EXPECT_EQ(cpus_of_this_thread(), before);
}

}  // namespace
