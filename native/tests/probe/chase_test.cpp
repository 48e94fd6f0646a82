// The chase's order: one cycle, by which no prefetcher finds its way.

#include "chase.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "ask.hpp"
#include "chase_kernels.hpp"

namespace atl::probe {
namespace {

struct alignas(kChaseLineBytes) Line {
  std::byte bytes[kChaseLineBytes];
};

TEST(ChaseOrder, IsOneCycleThroughAllLines) {
  for (const std::uint64_t seed : {0, 1, 12345}) {
    for (std::size_t lines = 1; lines < 40'000; lines = lines * 9 / 7 + 1) {
      const ChaseOrder order(lines, seed);
      std::vector<bool> seen(lines);
      std::size_t line = order.first();
      for (std::size_t step = 0; step < lines; ++step) {
        ASSERT_LT(line, lines);
        ASSERT_FALSE(seen[line]) << lines << " lines, step " << step;
        seen[line] = true;
        line = order.next(line);
      }
      ASSERT_EQ(line, order.first());
    }
  }
}

TEST(ChaseOrder, ForEachIsTheWalk) {
  for (const std::size_t lines : {1, 2, 3, 64, 1000, 4097}) {
    const ChaseOrder order(lines, 7);
    std::size_t line = order.first();
    std::size_t visited = 0;
    order.for_each([&](std::size_t given) {
      ASSERT_EQ(given, line);
      line = order.next(line);
      ++visited;
    });
    EXPECT_EQ(visited, lines);
  }
}

// Sattolo's cycles have no structure: a step to the same page is as rare as pages are many, and a
// stride hardly ever comes twice running.
TEST(ChaseOrder, StepsAreNeitherNearNorRegular) {
  constexpr std::size_t kLines = 1 << 16;
  constexpr std::size_t kLinesInPage = 4096 / kChaseLineBytes;
  const ChaseOrder order(kLines, 3);
  std::size_t same_page = 0;
  std::size_t same_stride = 0;
  std::size_t stride = 0;
  std::size_t line = order.first();
  for (std::size_t step = 0; step < kLines; ++step) {
    const std::size_t next = order.next(line);
    same_page += next / kLinesInPage == line / kLinesInPage ? 1 : 0;
    same_stride += next - line == stride ? 1 : 0;
    stride = next - line;
    line = next;
  }
  EXPECT_LT(same_page, kLines / 200);
  EXPECT_LT(same_stride, kLines / 200);
}

TEST(ChaseWalk, FollowsTheOrder) {
  constexpr std::size_t kLines = 777;
  std::vector<Line> lines(kLines);
  auto* const data = lines.front().bytes;
  const ChaseOrder order(kLines, 11);
  void** at = chase_build(data, order);
  chase_warm(data, order);
  std::size_t expected = order.first();
  for (int walk = 0; walk < 60; ++walk) {
    ASSERT_EQ(static_cast<void*>(at), data + expected * kChaseLineBytes);
    ASSERT_TRUE(chase_verify(data, order, at));
    at = chase_walk(at, 2);
    for (std::size_t step = 0; step < 2 * kChaseUnroll; ++step) expected = order.next(expected);
  }
  EXPECT_EQ(chase_null_walk(at, 5), at);
}

TEST(ChaseVerify, FindsAWalkThatLeftItsLines) {
  std::vector<Line> lines(100);
  auto* const data = lines.front().bytes;
  const ChaseOrder order(100, 11);
  void** const at = chase_build(data, order);
  ASSERT_TRUE(chase_verify(data, order, at));
  EXPECT_FALSE(chase_verify(data, order, at + 1));
  EXPECT_FALSE(chase_verify(data, order, reinterpret_cast<void**>(data + 100 * kChaseLineBytes)));
  *at = at;
  EXPECT_FALSE(chase_verify(data, order, at));
}

Json ask_chase(const std::string& fields) {
  const std::string cpu = std::to_string(allowed_cpus().front());
  return chase(Request(
      Json::parse(R"({"budget_ns": 1000000, "samples": 3, "cpu": )" + cpu + ", " + fields + "}")));
}

TEST(Chase, AnswersWithSamples) {
  for (const char* fields :
       {R"("bytes": 128)", R"("bytes": 100000)", R"("bytes": 5000000, "huge": true)",
        R"("bytes": 5000, "null": true)"}) {
    const Json answer = ask_chase(fields);
    EXPECT_EQ(answer["load_ns"].size(), 3U);
    EXPECT_GT(answer["load_ns"][0].get<double>(), 0.0);
    EXPECT_FALSE(answer["pages"].empty());
  }
}

TEST(Chase, RefusesLessThanTwoLines) {
  try {
    ask_chase(R"("bytes": 127)");
    FAIL();
  } catch (const Fault& fault) {
    EXPECT_EQ(fault.code(), Code::kArgument);
  }
}

}  // namespace
}  // namespace atl::probe
