// CpuSet: the set operations, and what it prints.

#include "cpu_set.hpp"

#include <gtest/gtest.h>

namespace atl::exec {
namespace {

CpuSet set_of(std::initializer_list<std::size_t> members) {
  CpuSet set;
  for (const std::size_t member : members) {
    set.insert(member);
  }
  return set;
}

TEST(CpuSet, PrintsRanges) {
  EXPECT_EQ(CpuSet{}.to_string(), "none");
  EXPECT_EQ(set_of({0}).to_string(), "0");
  EXPECT_EQ(set_of({0, 1, 2, 5, 63, 64, 65, 4097}).to_string(), "0-2,5,63-65,4097");
}

TEST(CpuSet, SetsOfDifferentLengths) {
  const CpuSet small = set_of({1, 2});
  const CpuSet large = set_of({2, 200});
  CpuSet set = small;
  set |= large;
  EXPECT_EQ(set, set_of({1, 2, 200}));
  set -= small;
  EXPECT_EQ(set, set_of({200}));
  set ^= set_of({200, 300});
  EXPECT_EQ(set, set_of({300}));
  set &= small;
  EXPECT_TRUE(set.empty());
  EXPECT_EQ(set, CpuSet{}) << "words that are zero do not count";
}

TEST(CpuSet, IncludesAndIntersects) {
  EXPECT_TRUE(set_of({1, 2, 200}).includes(set_of({1, 200})));
  EXPECT_FALSE(set_of({1, 2}).includes(set_of({1, 200})));
  EXPECT_TRUE(set_of({1}).includes(CpuSet{}));
  EXPECT_FALSE(set_of({1}).intersects(CpuSet{}));
  EXPECT_TRUE(set_of({1, 200}).intersects(set_of({200})));
}

TEST(CpuSet, Sizes) {
  EXPECT_EQ(CpuSet{}.end_index(), 0U);
  EXPECT_EQ(set_of({0}).end_index(), 1U);
  EXPECT_EQ(set_of({63}).end_index(), 64U);
  EXPECT_EQ(set_of({64, 3}).end_index(), 65U);
  EXPECT_EQ(set_of({64, 3}).size(), 2U);
  EXPECT_EQ(set_of({64, 3}).members(), (std::vector<std::size_t>{3, 64}));
}

}  // namespace
}  // namespace atl::exec
