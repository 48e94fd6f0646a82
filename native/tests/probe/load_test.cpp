// The loaders beside a chase.

#include "load.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ask.hpp"

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

Json ask_load(const std::string& fields) {
  const std::string cpu = std::to_string(allowed_cpus().front());
  return load(Request(
      Json::parse(R"({"budget_ns": 1000000, "samples": 3, "cpu": )" + cpu + ", " + fields + "}")));
}

TEST(Load, IdleHasNoLoaders) {
  const std::string another = std::to_string(allowed_cpus().front() + 1);
  for (const std::string& fields : {R"("bytes": 100000, "gap": null, "loaders": [)" + another + "]",
                                    std::string(R"("bytes": 100000, "loaders": [], "gap": 0)")}) {
    const Json answer = ask_load(fields);
    EXPECT_EQ(answer["gbs"], 0.0);
    EXPECT_EQ(answer["threads"].size(), 1U);
    EXPECT_GE(answer["load_ns"].size(), 3U);
  }
}

TEST(Load, LoadersRead) {
  const std::vector<int> cpus = allowed_cpus();
  // A loader on the chaser's own CPU is refused (below), so there is nobody to read beside it.
  if (cpus.size() < 2) GTEST_SKIP() << "needs two CPUs";
  const std::string another = std::to_string(cpus[1]);
  const Json answer = ask_load(R"("bytes": 1000000, "gap": 5, "loaders": [)" + another + "]");
  EXPECT_GE(answer["gbs"].get<double>(), 0.0);
  EXPECT_EQ(answer["threads"].size(), 2U);
  EXPECT_GE(answer["load_ns"].size(), 3U);
}

TEST(Load, RefusesAChaserThatLoads) {
  try {
    ask_load(R"("bytes": 100000, "gap": 0, "loaders": )" + first_cpus(1));
    FAIL();
  } catch (const Fault& fault) {
    EXPECT_EQ(fault.code(), Code::kArgument);
  }
}

}  // namespace
}  // namespace atl::probe
