// What is booked to a query: its calls, not what lies between them.
#include "queries.hpp"

#include <gtest/gtest.h>

namespace {

using atl::FillCounts;
using atl::FillSource;
using atl::duckdb::cut;
using atl::duckdb::Queries;
using atl::duckdb::Reading;

Reading at(double now_s, double others_cpu_s, double caller_cpu_s, int thread = 1) {
  Reading reading;
  reading.thread = thread;
  reading.now_s = now_s;
  reading.others_cpu_s = others_cpu_s;
  reading.caller_cpu_s = caller_cpu_s;
  return reading;
}

TEST(DuckDBQueries, CallsAreAddedUp) {
  Queries queries;
  queries.begin(1, "select 1", at(10, 5, 2));
  queries.pause(1, at(12, 8, 3), false);
  ASSERT_NE(queries.resume(1, at(20, 9, 7)), nullptr);  // the program did something in between
  queries.pause(1, at(21, 10, 7.5), false);
  const auto query = queries.take(1);
  ASSERT_TRUE(query);
  EXPECT_DOUBLE_EQ(query->record.started_s, 10);
  EXPECT_DOUBLE_EQ(query->record.wall_s, 3);
  EXPECT_DOUBLE_EQ(query->record.caller_cpu_s, 1.5);
  EXPECT_DOUBLE_EQ(query->record.cpu_s, 1.5 + 5);  // workers go on between the calls
  EXPECT_TRUE(query->record.alone);
  EXPECT_FALSE(query->record.failed);
  EXPECT_FALSE(queries.take(1));
}

TEST(DuckDBQueries, TwoAtATimeAreNotAlone) {
  Queries queries;
  queries.begin(1, "a", at(0, 0, 0));
  EXPECT_NE(queries.alone(), nullptr);
  queries.begin(2, "b", at(1, 0, 0));
  EXPECT_EQ(queries.alone(), nullptr);
  queries.pause(1, at(2, 0, 0), false);
  queries.begin(3, "c", at(3, 0, 0));  // beside b, not beside a
  queries.pause(2, at(4, 0, 0), true);
  queries.pause(3, at(4, 0, 0), false);
  EXPECT_EQ(queries.running(), 0);
  for (const Queries::Owner owner : {1, 2, 3}) {
    const auto query = queries.take(owner);
    ASSERT_TRUE(query);
    EXPECT_FALSE(query->record.alone);
    EXPECT_EQ(query->record.failed, owner == 2);
  }
}

TEST(DuckDBQueries, WhatStillRunsIsNotOver) {
  Queries queries;
  queries.begin(1, "a", at(0, 0, 0));
  EXPECT_FALSE(queries.take(1));
  EXPECT_EQ(queries.resume(1, at(1, 0, 0))->call.now_s, 0);  // a call within the call
  EXPECT_EQ(queries.running(), 1);
}

TEST(DuckDBQueries, NobodysCallsAreNothing) {
  Queries queries;
  EXPECT_EQ(queries.resume(7, at(0, 0, 0)), nullptr);
  EXPECT_EQ(queries.pause(7, at(0, 0, 0), false), nullptr);
  EXPECT_EQ(queries.running(), 0);
}

TEST(DuckDBQueries, TheOldestAreForgottenAndCounted) {
  Queries queries(2);
  for (const char* sql : {"a", "b", "c"}) {
    queries.begin(1, sql, at(0, 0, 0));
    queries.pause(1, at(1, 0, 0), false);
    queries.keep(queries.take(1)->record);
  }
  ASSERT_EQ(queries.ended().size(), 2U);
  EXPECT_EQ(queries.ended()[0].sql, "b");
  EXPECT_EQ(queries.left_out(), 1U);
}

TEST(DuckDBQueries, FillsAreThoseBetweenFirstAndLast) {
  Queries queries;
  Queries::Open& open = queries.begin(1, "a", at(0, 0, 0));
  FillCounts fills;
  fills.of(FillSource::local_chiplet) = 10;
  fills.of(FillSource::memory_local) = 5;
  Queries::count_fills(open, fills);
  fills.of(FillSource::local_chiplet) = 25;
  fills.of(FillSource::memory_local).reset();
  Queries::count_fills(open, fills);
  queries.pause(1, at(1, 0, 0), false);
  const auto query = queries.take(1);
  ASSERT_TRUE(query && query->record.fills);
  EXPECT_EQ(query->record.fills->of(FillSource::local_chiplet), 15U);
  EXPECT_FALSE(query->record.fills->of(FillSource::memory_local));
}

TEST(DuckDBQueries, AMoveIsNoted) {
  Queries queries;
  queries.begin(1, "a", at(0, 0, 0));
  queries.moved();
  queries.pause(1, at(1, 0, 0), false);
  EXPECT_FALSE(queries.take(1)->one_spread);
}

TEST(DuckDBQueries, AMoveAfterTheLastCallIsNone) {
  Queries queries;
  queries.moved();
  queries.begin(1, "a", at(0, 0, 0));
  queries.pause(1, at(1, 0, 0), false);
  queries.moved();  // for another connection's query
  EXPECT_TRUE(queries.find(1)->one_spread);
  queries.resume(1, at(2, 0, 0));
  queries.pause(1, at(3, 0, 0), false);
  EXPECT_FALSE(queries.take(1)->one_spread);
}

TEST(DuckDBQueries, ThreadsThatShareAnOwnerEndTheirOwnCalls) {
  constexpr int kOne = 1, kOther = 2;
  Queries queries;
  queries.begin(1, "a", at(0, 0, 5, kOne));
  EXPECT_FALSE(queries.take(1));
  queries.begin(1, "b", at(1, 0, 0, kOther));
  EXPECT_EQ(queries.running(), 1);
  ASSERT_EQ(queries.ended().size(), 1U);
  EXPECT_EQ(queries.ended()[0].sql, "a");
  EXPECT_FALSE(queries.ended()[0].alone);

  EXPECT_EQ(queries.pause(1, at(2, 0, 9, kOne), true), nullptr) << "b's call is the other thread's";
  EXPECT_EQ(queries.running(), 1);
  ASSERT_NE(queries.pause(1, at(3, 0, 1, kOther), false), nullptr);
  EXPECT_EQ(queries.running(), 0);
  const auto query = queries.take(1);
  ASSERT_TRUE(query);
  EXPECT_EQ(query->record.sql, "b");
  EXPECT_DOUBLE_EQ(query->record.wall_s, 2);
  EXPECT_DOUBLE_EQ(query->record.caller_cpu_s, 1);  // not the clock of the first thread
  EXPECT_FALSE(query->record.alone);
  EXPECT_FALSE(query->record.failed);
}

TEST(DuckDBQueries, OneThatWasNotTakenIsKeptAsFarAsItIs) {
  Queries queries;
  queries.begin(1, "a", at(0, 0, 0));
  queries.pause(1, at(1, 0, 0), false);
  EXPECT_TRUE(queries.begin(1, "b", at(2, 0, 0)).record.alone);
  ASSERT_EQ(queries.ended().size(), 1U);
  EXPECT_DOUBLE_EQ(queries.ended()[0].wall_s, 1);
  EXPECT_TRUE(queries.ended()[0].alone);
  EXPECT_EQ(queries.running(), 1);
}

TEST(DuckDBQueries, TextsAreCutBetweenCharacters) {
  EXPECT_EQ(cut("select", 10), "select");
  EXPECT_EQ(cut("select", 3), "sel");
  EXPECT_EQ(cut("a\xc3\xa4z", 2), "a");
  EXPECT_EQ(cut("a\xc3\xa4z", 3), "a\xc3\xa4");
  EXPECT_EQ(cut("\xf0\x9f\xa6\x86", 3), "");
}

}  // namespace
