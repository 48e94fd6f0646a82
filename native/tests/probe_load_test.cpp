// The loaders beside a chase.

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "load.hpp"

namespace atl::probe {
namespace {

TEST(LoadLines, ReadsOneWordOfEachLine) {
  std::vector<std::uint64_t> words(10 * 8, 1'000);
  for (std::size_t line = 0; line < 10; ++line) words[line * 8] = line;
  const auto* const data = reinterpret_cast<const std::byte*>(words.data());
  EXPECT_EQ(load_lines(data, 10, 0, false), 45U);
  EXPECT_EQ(load_lines(data, 4, 17, false), 6U);
  EXPECT_EQ(load_lines(data, 0, 17, false), 0U);
  EXPECT_EQ(load_lines(data, 10, 3, true), 0U);
}

Json ask(const std::string& fields) {
  return load(
      Request(Json::parse(R"({"cpu": 0, "budget_ns": 1000000, "samples": 3, )" + fields + "}")));
}

TEST(Load, IdleHasNoLoaders) {
  for (const char* fields : {R"("bytes": 100000, "loaders": [1], "gap": null)",
                             R"("bytes": 100000, "loaders": [], "gap": 0)"}) {
    const Json answer = ask(fields);
    EXPECT_EQ(answer["gbs"], 0.0);
    EXPECT_EQ(answer["threads"].size(), 1U);
    EXPECT_GE(answer["load_ns"].size(), 3U);
  }
}

TEST(Load, LoadersRead) {
  if (sysconf(_SC_NPROCESSORS_ONLN) < 2) GTEST_SKIP() << "needs two CPUs";
  const Json answer = ask(R"("bytes": 1000000, "loaders": [1], "gap": 5)");
  EXPECT_GE(answer["gbs"].get<double>(), 0.0);
  EXPECT_EQ(answer["threads"].size(), 2U);
  EXPECT_GE(answer["load_ns"].size(), 3U);
}

TEST(Load, RefusesAChaserThatLoads) {
  try {
    ask(R"("bytes": 100000, "loaders": [0], "gap": 0)");
    FAIL();
  } catch (const Fault& fault) {
    EXPECT_EQ(fault.code(), Code::kArgument);
  }
}

}  // namespace
}  // namespace atl::probe
