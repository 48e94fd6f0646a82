// What tests of the steering share: runs, and approaches that answer what the test says.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "atoll/runtime/controller.hpp"
#include "steering.hpp"

namespace atl::test::steering {

using atl::Decision;
using atl::Sample;
using atl::duckdb::Bounds;
using atl::duckdb::Policy;
using atl::duckdb::Steering;
using atl::runtime::WorkingSet;
using QueryRun = atl::duckdb::Run;  // a test has a Run of its own

inline constexpr std::uint64_t kMiB = 1024 * 1024;
inline const Bounds kEight{.least = 1, .most = 8, .threads = 8, .chiplet_l3_bytes = 32 * kMiB};
inline const std::string kText = "select 1";

// With counters, so that an approach sees spreads as they are.
inline QueryRun run_of(double busy_s, std::optional<std::uint64_t> set = {}) {
  return {.wall_s = busy_s / 8,
          .busy_s = busy_s,
          .working_set_bytes = set,
          .fills = {.remote_chiplet = 0, .memory = 0},
          .comparable = true};
}

// What the approaches that a Steering made were asked, and what they shall answer.
struct Script {
  std::vector<std::uint64_t> seeds;
  std::vector<Sample> samples;
  int answer = 3;

  atl::runtime::SpreadTable::MakeApproach make() {
    return [this](auto, std::uint64_t seed) {
      seeds.push_back(seed);
      return std::make_unique<Scripted>(*this);
    };
  }

 private:
  class Scripted final : public atl::Approach {
   public:
    explicit Scripted(Script& script) : script_(script) {}
    std::string name() const override { return "scripted"; }

   protected:
    Decision decide(const Sample& sample) override {
      script_.samples.push_back(sample);
      return {script_.answer, "scripted"};
    }

   private:
    Script& script_;
  };
};

// A comparable run where the text is sent.
inline int run_once(Steering& steering, const std::string& text, const Bounds& bounds,
                    const QueryRun& run) {
  const int spread = steering.begin(text, 1, bounds).spread;
  steering.end(text, spread, run, bounds);
  return spread;
}

}  // namespace atl::test::steering
