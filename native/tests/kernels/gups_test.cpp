// RandomAccess: each variant against the sequence done an update after the other.
#include "gups/gups.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "gups/messages.hpp"
#include "gups/sequence.hpp"
#include "gups/table.hpp"
#include "gups/tasks.hpp"
#include "kernels/running.hpp"

namespace atl::kernels {
namespace {

// As the rules write it.
std::uint64_t next(std::uint64_t value) {
  const bool high = static_cast<std::int64_t>(value) < 0;
  return (value << 1) ^ (high ? 7 : 0);
}

std::vector<std::uint64_t> numbered(std::size_t entries) {
  std::vector<std::uint64_t> table(entries);
  std::iota(table.begin(), table.end(), 0u);
  return table;
}

std::vector<std::uint64_t> updated(std::size_t entries, Range range) {
  std::vector<std::uint64_t> table = numbered(entries);
  std::uint64_t value = 1;
  for (std::uint64_t at = 0; at < range.last; ++at) {
    value = next(value);
    if (at >= range.first) table[value % entries] ^= value;
  }
  return table;
}

TEST(GupsSequence, StartsAnywhere) {
  std::uint64_t value = 1;
  for (std::uint64_t n = 0; n < 5000; ++n) {
    ASSERT_EQ(start(n), value) << n;
    ASSERT_EQ(after(value), next(value));
    value = next(value);
  }
  EXPECT_EQ(start(64), 7u);
  EXPECT_EQ(product(start(1'000'000'007), start(123'456'789)), start(1'123'456'796));
}

TEST(GupsTasks, DoEachUpdateOnce) {
  for (const std::uint64_t first : {0u, 1u, 77u}) {
    for (const std::uint64_t length : {0u, 1u, 7u, 8u, 9u, 127u, 128u, 129u, 1000u, 4096u}) {
      const Range range{first, first + length};
      std::vector<std::uint64_t> table = numbered(256);
      update_by_tasks({table.data(), 255}, range);
      EXPECT_EQ(table, updated(256, range)) << first << " " << length;
    }
  }
}

TEST(GupsMessages, DoEachUpdateOnceThoughBoxesAreFull) {
  for (const int ranks : {1, 2, 3, 5, 600}) {
    std::vector<std::uint64_t> table = numbered(1024);
    Messages messages({table.data(), 1023}, 1024, ranks);
    const std::uint64_t share = 7000;
    const auto all = static_cast<std::uint64_t>(ranks);
    // One after the other, so that nobody empties the others' boxes.
    for (std::uint64_t rank = 0; rank < all; ++rank) {
      messages.send(rank, {rank * share, (rank + 1) * share});
    }
    for (std::uint64_t rank = 0; rank < all; ++rank) messages.receive(rank);
    EXPECT_EQ(table, updated(1024, {0, all * share})) << ranks;
    EXPECT_EQ(messages.done_by_senders() > 0, ranks > 1) << ranks;
  }
}

TEST(Gups, IsRightOnEveryTeam) {
  for (const auto& [scheduler, workers] : teams()) {
    for (const char* const variant : {"plain", "ahead", "tasks", "messages"}) {
      const Result result =
          run_workload(gups(), scheduler, workers, {{"table-mib", "1"}, {"variant", variant}});
      EXPECT_EQ(result.work, 4 * 131072);
      EXPECT_LE(result.figures.at(0).second, workers == 1 ? 0 : 1310);
    }
  }
}

TEST(Gups, TheCheckCountsWrongEntries) {
  with_team("os", 2, [](Team& team, const Memory& memory) {
    constexpr std::size_t kEntries = 1 << 14;
    const std::vector<std::uint64_t> right = updated(kEntries, {0, 4 * kEntries});
    Array<std::uint64_t> table = make_array<std::uint64_t>(memory, kEntries);
    for (const std::size_t wrong : {0u, 1u, 300u}) {
      std::copy(right.begin(), right.end(), table.begin());
      for (std::size_t at = 0; at < wrong; ++at) table[at * 17] ^= 1u << (at % 20);
      EXPECT_EQ(undo_updates(team, table), wrong);
    }
  });
}

TEST(Gups, RefusesATableThatIsNoPowerOfTwo) {
  EXPECT_THROW((void)run_workload(gups(), "os", 1, {{"table-mib", "3"}}), UsageFault);
}

}  // namespace
}  // namespace atl::kernels
