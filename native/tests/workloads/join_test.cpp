// W3 and W4, each variant on each team, summed and kept: the answer that sorting gives.

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "atoll_team.hpp"
#include "index_join.hpp"
#include "indexes/art.hpp"
#include "indexes/btree.hpp"
#include "indexes/masstree.hpp"
#include "indexes/skip_list.hpp"
#include "join_fast.hpp"
#include "parts.hpp"
#include "plain_team.hpp"
#include "verify.hpp"

namespace atl::workloads {
namespace {

constexpr std::pair<unsigned, unsigned> kJoins[] = {{1, 1}, {5'000, 1}, {30'000, 2'001}};

template <class Team>
class JoinsOn : public testing::Test {
 protected:
  template <Index I>
  void expect_right_by(Team& team, const std::vector<Record>& build,
                       const std::vector<Record>& probe) {
    team.run([&] {
      I index;
      build_index(team, index, build);
      EXPECT_TRUE(right_join(build, probe, total(join_by<Joined>(team, index, probe, false))));
      EXPECT_TRUE(right_join(build, probe, total(join_by<Kept>(team, index, probe, false))));
      EXPECT_TRUE(right_join(build, probe, total(join_by<Joined>(team, index, probe, true))));
      EXPECT_TRUE(right_join(build, probe, total(join_by<Kept>(team, index, probe, true))));
    });
  }
  void expect_right_by_all(Team& team, const std::vector<Record>& build,
                           const std::vector<Record>& probe) {
    expect_right_by<Art>(team, build, probe);
    expect_right_by<Masstree>(team, build, probe);
    expect_right_by<BTree>(team, build, probe);
    expect_right_by<SkipList>(team, build, probe);
  }
  void expect_right(Team& team, const std::vector<Record>& build,
                    const std::vector<Record>& probe) {
    team.run([&] {
      EXPECT_TRUE(right_join(build, probe, total(join_paper<Joined>(team, build, probe))));
      EXPECT_TRUE(right_join(build, probe, total(join_paper<Kept>(team, build, probe))));
      EXPECT_TRUE(right_join(build, probe, total(join_fast<Joined>(team, build, probe))));
      EXPECT_TRUE(right_join(build, probe, total(join_fast<Kept>(team, build, probe))));
    });
  }
};
using Both = testing::Types<PlainTeam, AtollTeam>;
TYPED_TEST_SUITE(JoinsOn, Both);

TYPED_TEST(JoinsOn, AllDataSets) {
  for (const int threads : test::kTeams) {
    TypeParam team(threads);
    for (const Dataset dataset : test::kDatasets) {
      for (const auto& [records, keys] : kJoins) {
        SCOPED_TRACE(std::string(name_of(dataset)) + ", " + std::to_string(records) + " records, " +
                     std::to_string(threads) + " threads");
        const std::vector<Record> build = test::keys_of(keys);
        const std::vector<Record> probe = test::records_of({dataset, records, keys, 1});
        this->expect_right(team, build, probe);
        this->expect_right_by_all(team, build, probe);
      }
    }
  }
}

TYPED_TEST(JoinsOn, RowsWithoutAMatchAndKeysThatRepeat) {
  std::vector<Record> build;
  std::vector<Record> probe;
  for (std::int64_t at = 0; at < 900; ++at) build.push_back({at % 300 * 2, at});
  for (std::int64_t at = 0; at < 5'000; ++at) probe.push_back({at % 700, at});
  TypeParam team(3);
  this->expect_right(team, build, probe);
  this->expect_right(team, build, {});
  this->expect_right(team, {}, probe);
}

TYPED_TEST(JoinsOn, ByAnIndexRowsWithoutAMatch) {
  std::vector<Record> build;
  std::vector<Record> probe;
  for (std::int64_t at = 0; at < 900; ++at) build.push_back({at * 2 - 300, at});
  for (std::int64_t at = 0; at < 5'003; ++at) probe.push_back({at % 2'000 - 500, at});
  TypeParam team(3);
  this->expect_right_by_all(team, build, probe);
  this->expect_right_by_all(team, build, {});
  this->expect_right_by_all(team, {}, probe);
}

// Those that lie close, those that do not, and the ends of all numbers.
TYPED_TEST(JoinsOn, KeysByTheirRange) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  TypeParam team(3);
  for (const std::int64_t step : {1, 3, 4, 5, 1'000'000}) {
    for (const std::int64_t least : {std::int64_t{0}, kMost - 499 * step - 1}) {
      SCOPED_TRACE(std::to_string(least) + " on, step " + std::to_string(step));
      std::vector<Record> build;
      std::vector<Record> probe;
      for (std::int64_t at = 0; at < 500; ++at) build.push_back({least + at * step, at});
      for (std::int64_t at = 0; at < 3'000; ++at) {
        probe.push_back({least + at % 500 * step - at % 3, at});
      }
      probe.push_back({-1, 1});
      probe.push_back({kMost, 1});
      this->expect_right(team, build, probe);
    }
  }
}

// The value that marks a free place in an array is a value like others.
TYPED_TEST(JoinsOn, AnyValue) {
  TypeParam team(2);
  std::vector<Record> build;
  for (std::int64_t at = 0; at < 100; ++at) build.push_back({at, at});
  for (const std::int64_t value : {std::int64_t{0}, std::numeric_limits<std::int64_t>::min()}) {
    build[50].value = value;
    this->expect_right(team, build, {{50, 1}, {51, 1}});
  }
}

TEST(RightJoin, AcceptsTheRightAnswerOnly) {
  const std::vector<Record> build = {{1, 100}, {2, 200}, {1, 1000}};
  const std::vector<Record> probe = {{1, 1}, {3, 3}, {2, 2}, {1, 4}};
  EXPECT_TRUE(right_join(build, probe, {5, 2'400, 12}));
  EXPECT_FALSE(right_join(build, probe, {4, 2'400, 12}));
  EXPECT_FALSE(right_join(build, probe, {5, 2'401, 12}));
  EXPECT_FALSE(right_join(build, probe, {5, 2'400, 13}));
}

}  // namespace
}  // namespace atl::workloads
