// The command line of atoll-kernels: what is taken, what is refused, the help and the description.

#include "options.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

namespace atl::kernels {
namespace {

Options parsed(std::vector<std::string> words) {
  words.insert(words.begin(), "atoll-kernels");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  return parse_options(static_cast<int>(words.size()), argv.data(), 6);
}

TEST(KernelOptions, DefaultsAreTaken) {
  const Options options = parsed({"gups"});
  EXPECT_STREQ(options.workload->name, "gups");
  EXPECT_EQ(options.team.scheduler, "atoll");
  EXPECT_EQ(options.team.approach, "");
  EXPECT_EQ(options.team.workers, 6);
  EXPECT_EQ(options.arrays, ArrayKind::kPartitioned);
  EXPECT_EQ(options.pages, Pages::transparent);
  EXPECT_EQ(options.runs, 3);
  EXPECT_EQ(options.seed, 1U);
  EXPECT_EQ(options.settings.number("table-mib"), 256U);
}

TEST(KernelOptions, EachFlagIsTakenInBothSpellings) {
  const Options options = parsed({"gups", "--table-mib=64", "--scheduler", "arcas-printed",
                                  "--workers", "3", "--arrays=local", "--pages", "normal", "--runs",
                                  "2", "--seed", "9", "--interval-ms", "7"});
  EXPECT_EQ(options.settings.number("table-mib"), 64U);
  EXPECT_EQ(options.team.scheduler, "arcas-printed");
  EXPECT_EQ(options.team.workers, 3);
  EXPECT_EQ(options.team.interval, std::chrono::milliseconds(7));
  EXPECT_EQ(options.arrays, ArrayKind::kLocal);
  EXPECT_EQ(options.pages, Pages::normal);
  EXPECT_EQ(options.runs, 2);
  EXPECT_EQ(options.seed, 9U);
  EXPECT_EQ(parsed({"gups", "--spread", "4"}).team.approach, "static:4");
  EXPECT_EQ(parsed({"gups", "--approach", "adaptive"}).team.approach, "adaptive");
}

TEST(KernelOptions, WhatIsWrongIsNamedInALine) {
  struct Wrong {
    std::vector<std::string> words;
    const char* named;
  };
  const Wrong all[] = {
      {{}, "name a workload"},
      {{"w1"}, "w1: not a workload; there are "},
      {{"gups", "bfs"}, "bfs: not a flag"},
      {{"gups", "--nothing", "1"}, "--nothing: gups has no such flag"},
      {{"gups", "--runs"}, "--runs: a value is missing"},
      {{"gups", "--runs", "2", "--runs=2"}, "--runs: given twice"},
      {{"gups", "--runs", "0"}, "--runs 0: not a number from 1 to "},
      {{"gups", "--runs", "1001"}, "--runs 1001: not a number from 1 to 1000"},
      {{"gups", "--runs", "1e3"}, "--runs 1e3: not a number"},
      {{"gups", "--runs", " 1"}, "--runs  1: not a number"},
      {{"gups", "--runs="}, "--runs : not a number"},
      {{"gups", "--seed", "-1"}, "--seed -1: not a number from 0"},
      {{"gups", "--seed", "18446744073709551616"}, "--seed 18446744073709551616: not a number"},
      {{"gups", "--spread", "x"}, "--spread x: not a number from 1"},
      {{"gups", "--arrays", "near"}, "--arrays near: unknown; there are partitioned, local, "},
      {{"gups", "--spread", "1", "--approach", "adaptive"}, "--approach, --spread: give one"},
      {{"bfs", "--graph", "a.el", "--scale", "3"}, "--scale: has no effect with these flags"},
      {{"gups", "--scheduler", "os", "--interval-ms", "5"},
       "--interval-ms: only --scheduler atoll"},
  };
  for (const Wrong& one : all) {
    try {
      (void)parsed(one.words);
      ADD_FAILURE() << one.named << ": was taken";
    } catch (const UsageFault& fault) {
      const std::string message = fault.what();
      EXPECT_EQ(message.find(one.named), 0U) << message;
      EXPECT_EQ(message.find('\n'), std::string::npos);
    }
  }
}

TEST(KernelOptions, TheHelpFitsATerminal) {
  const std::string text = help();
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80U) << line;
    EXPECT_FALSE(line.ends_with(' ')) << line;
  }
  for (const Workload* const workload : workloads()) {
    EXPECT_NE(text.find("\n" + std::string(workload->name) + ": "), std::string::npos);
  }
}

// Other programs show and pass on what is described, so it must hold.
TEST(KernelOptions, EveryDescribedDefaultAndChoiceIsTaken) {
  const auto described = nlohmann::json::parse(description());
  ASSERT_EQ(described["workloads"].size(), workloads().size());
  for (const auto& workload : described["workloads"]) {
    const std::string name = workload["name"];
    EXPECT_FALSE(std::string(workload["unit"]).empty());
    for (const auto* const parameters : {&workload["parameters"], &described["parameters"]}) {
      for (const auto& each : *parameters) {
        const std::string flag = "--" + std::string(each["name"]);
        EXPECT_FALSE(std::string(each["help"]).empty()) << name << flag;
        std::vector<std::string> values = each.value("choices", std::vector<std::string>{});
        if (each["default"] != "") values.push_back(each["default"]);
        for (const std::string& value : values) EXPECT_NO_THROW((void)parsed({name, flag, value}));
      }
    }
  }
}

}  // namespace
}  // namespace atl::kernels
