// Requests and refusals, and the kernels ping, pipe and spin through them. No figure is judged but
// for being one: the machine that runs the tests is busy.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ask.hpp"
#include "memory.hpp"

namespace {

using atl::probe::allowed_cpus;
using atl::probe::asked;
using atl::probe::code_of;
using atl::probe::Json;
using atl::probe::kAbsentCpu;

void expect_positive(const Json& samples) {
  ASSERT_GE(samples.size(), 3U);
  for (const Json& sample : samples) EXPECT_GT(sample.get<double>(), 0);
}

void expect_at_home(const Json& answered, const std::vector<int>& cpus) {
  ASSERT_EQ(answered.at("threads").size(), cpus.size());
  for (std::size_t i = 0; i < cpus.size(); ++i) {
    const Json& thread = answered.at("threads").at(i);
    EXPECT_EQ(thread.at("cpu"), cpus[i]);
    EXPECT_EQ(thread.at("seen"), (Json{cpus[i], cpus[i]}));
    EXPECT_GT(thread.at("tid").get<int>(), 0);
    EXPECT_GE(thread.at("involuntary").get<int>(), 0);
  }
}

TEST(Hello, TellsWhatItMeasuresWith) {
  const Json answered = asked({{"do", "hello"}});
  EXPECT_EQ(answered.at("version"), 1);
  EXPECT_GT(answered.at("tick_ns").get<double>(), 0);
  EXPECT_EQ(answered.at("page_bytes"), atl::probe::page_bytes());
  EXPECT_GE(answered.at("wall_ns").get<std::int64_t>(), 0);
  // What `move` takes where it may choose.
  const Json moved = asked({{"do", "move"},
                            {"cpus", {allowed_cpus().front()}},
                            {"bytes", 4096},
                            {"op", "read"},
                            {"budget_ns", 0}});
  EXPECT_EQ(moved.at("isa"), answered.at("isa"));
}

TEST(Protocol, RefusesWhatIsNoRequest) {
  for (const std::string line :
       {"", "xx", "[]", "3", "null", "{", "{}", R"({"do":3})", R"({"do":"nothing"})",
        R"({"do":"two\nlines"})", "\xff\xfe", R"({"do":"hello"} trailing)"}) {
    EXPECT_EQ(code_of(line), "argument") << line;
  }
  // Nested as deeply as a line can be, closed or not.
  constexpr std::size_t kDepth = atl::probe::kMostLineBytes / 2 - 8;
  EXPECT_EQ(code_of(std::string(kDepth, '[')), "argument");
  EXPECT_EQ(code_of(R"({"do":)" + std::string(kDepth, '[') + std::string(kDepth, ']') + "}"),
            "argument");
  // A refusal stays one line, and JSON, whatever it quotes.
  EXPECT_EQ(atl::probe::answer(R"({"do":"two\nlines"})").find('\n'), std::string::npos);
}

TEST(Protocol, RefusesFieldsThatAreMissingWrongOrOutOfRange) {
  const Json good{{"do", "ping"}, {"cpus", {0, 1}}, {"home", 0}, {"op", "cas"}, {"budget_ns", 0}};
  const auto with = [&](const char* field, const Json& value) {
    Json request = good;
    request[field] = value;
    return code_of(request);
  };
  for (const Json& cpus :
       {Json(), Json(3), Json::array(), Json{0}, Json{0, 0}, Json{0, 1, 2}, Json{-1, 0},
        Json{0, 0.5}, Json{0, "1"}, Json{0, UINT64_MAX}, Json{0, INT64_MAX}, Json{0, 1 << 20}}) {
    EXPECT_EQ(with("cpus", cpus), "argument") << cpus;
  }
  for (const Json& home : {Json(), Json(2), Json(-1), Json("0"), Json(0.0), Json(true)}) {
    EXPECT_EQ(with("home", home), "argument") << home;
  }
  for (const Json& op : {Json(), Json(1), Json("swap"), Json("")}) {
    EXPECT_EQ(with("op", op), "argument") << op;
  }
  EXPECT_EQ(with("budget_ns", -1), "argument");
  EXPECT_EQ(with("budget_ns", 1e99), "argument");
  EXPECT_EQ(with("budget_ns", INT64_MAX), "argument");
  EXPECT_EQ(with("samples", 0), "argument");
  EXPECT_EQ(with("settle", -0.1), "argument");
  EXPECT_EQ(with("settle", "a"), "argument");
  EXPECT_EQ(with("null", 1), "argument");
  EXPECT_EQ(with("cpus", {0, kAbsentCpu}), "cpu");
}

TEST(Spin, EveryCpuHasItsSamples) {
  const std::vector<int> cpus = allowed_cpus();
  for (const bool null_run : {false, true}) {
    const Json answered =
        asked({{"do", "spin"}, {"cpus", cpus}, {"budget_ns", 1'000'000}, {"null", null_run}});
    ASSERT_TRUE(answered.at("ok").get<bool>()) << answered;
    ASSERT_EQ(answered.at("op_ns").size(), cpus.size());
    for (const Json& samples : answered.at("op_ns")) expect_positive(samples);
    expect_at_home(answered, cpus);
  }
}

class Pair : public testing::Test {
 protected:
  void SetUp() override {
    cpus_ = allowed_cpus();
    if (cpus_.size() < 2) GTEST_SKIP() << "one CPU only: there is no pair";
    cpus_ = {cpus_.back(), cpus_.front()};
  }
  std::vector<int> cpus_;
};

TEST_F(Pair, PingTakesEitherHomeAndEitherOperation) {
  for (const char* const op : {"cas", "store"}) {
    for (const int home : {0, 1}) {
      const Json answered = asked(
          {{"do", "ping"}, {"cpus", cpus_}, {"home", home}, {"op", op}, {"budget_ns", 1'000'000}});
      ASSERT_TRUE(answered.at("ok").get<bool>()) << answered;
      expect_positive(answered.at("one_way_ns"));
      expect_at_home(answered, cpus_);
      EXPECT_GE(answered.at("interrupted").get<int>(), 0);
      EXPECT_EQ(answered.at("pages").size(), 1U);
      EXPECT_FALSE(answered.at("huge").get<bool>());
    }
  }
}

TEST_F(Pair, PingTakesThreeSamplesWithoutABudgetAndNoMoreThanAllowed) {
  Json request{{"do", "ping"}, {"cpus", cpus_}, {"home", 0}, {"op", "cas"}, {"budget_ns", 0}};
  EXPECT_EQ(asked(request).at("one_way_ns").size(), 3U);
  request["budget_ns"] = 10'000'000'000;
  request["settle"] = 0;
  request["samples"] = 7;
  EXPECT_EQ(asked(request).at("one_way_ns").size(), 7U);
}

TEST_F(Pair, PingsNullRunHasOneThread) {
  for (const char* const op : {"cas", "store"}) {
    const Json answered = asked({{"do", "ping"},
                                 {"cpus", cpus_},
                                 {"home", 1},
                                 {"op", op},
                                 {"null", true},
                                 {"budget_ns", 1'000'000}});
    ASSERT_TRUE(answered.at("ok").get<bool>()) << answered;
    expect_positive(answered.at("one_way_ns"));
    expect_at_home(answered, {cpus_[0]});
  }
}

TEST_F(Pair, PipeCarriesWhatWasWritten) {
  for (const std::size_t bytes : {64U, 192U, 4096U, 1U << 20}) {
    for (const bool null_run : {false, true}) {
      const Json answered = asked({{"do", "pipe"},
                                   {"cpus", cpus_},
                                   {"home", 1},
                                   {"bytes", bytes},
                                   {"null", null_run},
                                   {"budget_ns", 1'000'000}});
      ASSERT_TRUE(answered.at("ok").get<bool>()) << answered;
      EXPECT_TRUE(answered.at("verified").get<bool>());
      expect_positive(answered.at("gbs"));
      expect_at_home(answered, cpus_);
    }
  }
}

TEST_F(Pair, PipeRefusesBuffersThatItCannotHave) {
  const auto with_bytes = [&](const Json& bytes) {
    return code_of(Json{{"do", "pipe"}, {"cpus", cpus_}, {"home", 0}, {"bytes", bytes}});
  };
  for (const Json& bytes : {Json(), Json(0), Json(-64), Json(100), Json(INT64_MAX), Json(64.0)}) {
    EXPECT_EQ(with_bytes(bytes), "argument") << bytes;
  }
  EXPECT_EQ(with_bytes(std::int64_t{1} << 45), "memory");
}

}  // namespace
