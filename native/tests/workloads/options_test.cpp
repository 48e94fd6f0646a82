// The command line of atoll-workload, the memory that it asks for, and a whole run.

#include "options.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "need.hpp"
#include "run.hpp"

namespace atl::workloads {
namespace {

Options parsed(std::vector<std::string> words) {
  words.insert(words.begin(), "atoll-workload");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  return parse_options(static_cast<int>(words.size()), argv.data(), 6);
}

TEST(Options, DefaultsAreThePapersByWorkload) {
  EXPECT_EQ(parsed({"w1"}).data.dataset, Dataset::kMovingCluster);
  EXPECT_EQ(parsed({"w2"}).data.dataset, Dataset::kZipf);
  EXPECT_EQ(parsed({"w3"}).data.dataset, Dataset::kSequential);
  EXPECT_EQ(parsed({"w4"}).data.dataset, Dataset::kSequential);
  EXPECT_EQ(parsed({"w1"}).threads, 6);
  EXPECT_TRUE(parsed({"w1"}).check);
}

TEST(Options, OneOfRecordsAndGroupsKeepsTheRatio) {
  EXPECT_EQ(parsed({"w1", "--records", "5000"}).data.groups, 50U);
  EXPECT_EQ(parsed({"w1", "--records", "5"}).data.groups, 1U);
  EXPECT_EQ(parsed({"w1", "--groups", "50"}).data.records, 5'000U);
  EXPECT_EQ(parsed({"w3", "--groups", "1000"}).data.records, 16'000U);
  EXPECT_EQ(parsed({"w3", "--groups", "4000000000"}).data.records, kMostRecords);
  const Options both = parsed({"w2", "--groups", "3", "--records", "4"});
  EXPECT_EQ(both.data.groups, 3U);
  EXPECT_EQ(both.data.records, 4U);
}

TEST(Options, EachFlagIsTaken) {
  const Options options = parsed({"--scheduler", "atoll", "--variant=fast", "w3", "--dataset",
                                  "zipf", "--threads", "3", "--key-step", "7", "--seed", "9",
                                  "--runs", "2", "--keep", "--no-check", "--save", "here"});
  EXPECT_EQ(options.scheduler, Scheduler::kAtoll);
  EXPECT_EQ(options.variant, Variant::kFast);
  EXPECT_EQ(options.workload, Workload::kJoin);
  EXPECT_EQ(options.data.dataset, Dataset::kZipf);
  EXPECT_EQ(options.data.seed, 9U);
  EXPECT_EQ(options.key_step, 7U);
  EXPECT_EQ(options.threads, 3);
  EXPECT_EQ(options.runs, 2);
  EXPECT_TRUE(options.keep);
  EXPECT_FALSE(options.check);
  EXPECT_EQ(options.folder, "here");
  EXPECT_EQ(parsed({"w1", "--pin", "4,0,12"}).pin, (std::vector<int>{4, 0, 12}));
  EXPECT_THROW((void)parsed({"w1", "--pin", "0", "--scheduler", "atoll"}), UsageFault);
}

TEST(Options, WhatIsWrongIsNamed) {
  const std::vector<std::vector<std::string>> wrong = {
      {},
      {"w5"},
      {"w3", "--index", "btree"},
      {"w4", "--index", "hash"},
      {"w1", "w2"},
      {"w1", "--variant", "quick"},
      {"w1", "--scheduler", "omp"},
      {"w1", "--dataset", "uniform"},
      {"w1", "--records", "0"},
      {"w1", "--records", "1e6"},
      {"w1", "--records", "-5"},
      {"w1", "--records", "4294967296"},
      {"w1", "--records", "10", "--groups", "11"},
      {"w1", "--threads", "0"},
      {"w3", "--key-step", "0"},
      {"w1", "--threads"},
      {"w1", "--nothing"},
      {"w1", "--keep"},
      {"w1", "-x"},
      {"w1", "--pin", "x"},
      {"w1", "--pin", "8192"},
  };
  for (const std::vector<std::string>& words : wrong) {
    std::string all;
    for (const std::string& word : words) all += word + " ";
    try {
      (void)parsed(words);
      ADD_FAILURE() << all << "was taken";
    } catch (const UsageFault& fault) {
      const std::string message = fault.what();
      EXPECT_EQ(message.find('\n'), std::string::npos);
      EXPECT_NE(message.find(words.empty() || words.back() == "w2" ? "w1" : words.back()),
                std::string::npos)
          << message;
    }
  }
}

TEST(Need, GrowsWithTheRecordsAndIsRefusedWhereItDoesNotFit) {
  for (const char* const workload : {"w1", "w2", "w3", "w4"}) {
    for (const char* const variant : {"paper", "fast"}) {
      const Options small = parsed({workload, "--variant", variant, "--records", "1000000"});
      const Options large = parsed({workload, "--variant", variant, "--records", "4000000000"});
      EXPECT_GT(needed_bytes(large), 4'000'000'000 * 2 * sizeof(Record));
      EXPECT_LT(needed_bytes(small), 2U << 30);
      require_memory(small, needed_bytes(small));
      EXPECT_THROW(require_memory(small, needed_bytes(small) - 1), UsageFault);
      EXPECT_THROW((void)run(large), UsageFault);
    }
  }
}

TEST(Need, ManyThreadsNeedLittleForFewRecords) {
  for (const char* const workload : {"w1", "w2"}) {
    const Options few =
        parsed({workload, "--variant", "fast", "--records", "1000", "--threads", "1024"});
    EXPECT_LT(needed_bytes(few), 512U << 20);
  }
}

TEST(Need, CountsTheGroupsOfW1Fast) {
  // 54 bytes a record were in use at the peak.
  const Options all = parsed({"w1", "--variant", "fast", "--records", "5000000", "--groups",
                              "5000000", "--threads", "1", "--no-check"});
  EXPECT_GT(needed_bytes(all), 5'000'000U * 54);
}

TEST(Run, PrintsWhatItDid) {
  for (const char* const workload : {"w1", "w2", "w3", "w4"}) {
    for (const char* const scheduler : {"plain", "atoll"}) {
      for (const char* const variant : {"paper", "fast"}) {
        const Options options = parsed({workload, "--scheduler", scheduler, "--variant", variant,
                                        "--records", "20000", "--threads", "2", "--runs", "2"});
        const Result result = run(options);
        const auto json = nlohmann::json::parse(as_json(options, result));
        EXPECT_EQ(json["workload"], workload);
        EXPECT_EQ(json["scheduler"], scheduler);
        EXPECT_EQ(json["variant"], variant);
        EXPECT_EQ(json["runs_s"].size(), 2U);
        EXPECT_GT(json["records_per_s"].get<double>(), 0);
        EXPECT_GT(json["peak_bytes"].get<std::uint64_t>(), result.input_bytes);
        EXPECT_EQ(json["overhead"].is_null(), std::string(workload) == "w3");
        EXPECT_EQ(json["answer"]["rows"],
                  joins(options.workload) ? options.data.records : options.data.groups);
      }
    }
  }
}

TEST(Run, OverheadIsOfWhatIsHeldBesideTheInput) {
  const Options options = parsed({"w1", "--records", "1000000", "--groups", "10", "--runs", "1"});
  Result result = run(options);
  result.input_bytes = 16'000'000;
  result.peak_bytes = 40'000'480;
  EXPECT_DOUBLE_EQ(nlohmann::json::parse(as_json(options, result))["overhead"], 3.0);
  const Options kept = parsed({"w3", "--keep", "--records", "1000000"});
  EXPECT_EQ(held_bytes(kept), 24'000'000U);
}

TEST(Run, KeysMayLieApart) {
  for (const char* const workload : {"w1", "w2", "w3"}) {
    for (const char* const variant : {"paper", "fast"}) {
      const auto sums = [&](const char* step) {
        return run(parsed({workload, "--variant", variant, "--records", "20000", "--threads", "2",
                           "--runs", "1", "--key-step", step}))
            .sums;
      };
      EXPECT_EQ(sums("1"), sums("1000003")) << workload << ", " << variant;
    }
  }
}

TEST(Run, TheAnswerDependsOnTheDataAlone) {
  std::vector<std::uint64_t> sums;
  for (const char* const threads : {"1", "3"}) {
    for (const char* const variant : {"paper", "fast"}) {
      const Result result = run(parsed(
          {"w1", "--variant", variant, "--records", "30000", "--threads", threads, "--runs", "1"}));
      sums.push_back(result.sums.at(0));
    }
  }
  for (const std::uint64_t sum : sums) EXPECT_EQ(sum, sums.front());
}

}  // namespace
}  // namespace atl::workloads
