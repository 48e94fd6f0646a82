// What a workload is to the program: a name, its parameters, how much memory it needs, and a run.
//
// A workload's file defines one `const Workload`; workloads.cpp lists them. The command line, its
// help, `--describe` and the result's JSON all come from the list, so nothing else names
// parameters.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "concurrency.hpp"
#include "flags.hpp"
#include "team.hpp"

namespace atl::kernels {

// The parameters' values, checked.
class Settings {
 public:
  explicit Settings(std::map<std::string, std::string> values) : values_(std::move(values)) {}
  [[nodiscard]] std::uint64_t number(const std::string& name) const;
  [[nodiscard]] const std::string& text(const std::string& name) const { return values_.at(name); }
  [[nodiscard]] const std::map<std::string, std::string>& all() const { return values_; }

 private:
  std::map<std::string, std::string> values_;
};

// How a workload is run, whatever it is.
struct Conditions {
  Memory memory;
  int runs = 3;
  std::uint64_t seed = 1;
  std::vector<double> seconds = {};  // of the timed runs so far
  double make_s = 0;                 // until the input was there
  std::function<Lines()> lines = [] { return Lines{}; };
  std::vector<Lines> fills = {};       // of each timed run
  Concurrency* concurrency = nullptr;  // watches the timed runs
};

[[nodiscard]] Lines since(const Lines& before, const Lines& after);
[[nodiscard]] double median(std::vector<double> values);
[[nodiscard]] std::string gibibytes(std::uint64_t bytes);  // "1.5 GiB"

// Runs `work` as often as wanted, each time after `prepare` and before `verify`, which are not
// timed.
template <class Prepare, class Work, class Verify>
void time_runs(Conditions& conditions, Prepare&& prepare, Work&& work, Verify&& verify) {
  for (int run = 0; run < conditions.runs; ++run) {
    prepare(run);
    const Lines before = conditions.lines();
    if (conditions.concurrency != nullptr) conditions.concurrency->watch(true);
    const auto begin = std::chrono::steady_clock::now();
    work(run);
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    if (conditions.concurrency != nullptr) conditions.concurrency->watch(false);
    conditions.seconds.push_back(passed.count());
    conditions.fills.push_back(since(before, conditions.lines()));
    verify(run);
  }
}

// What a run has done. Workloads throw WrongAnswer after a run whose answer is wrong, so there is
// no result of such.
struct Result {
  double work = 0;  // of one run, in the workload's unit
  // Bytes that one run must at least move between memory and caches; nullopt: not known.
  std::optional<double> traffic_bytes = {};
  // Of the answer and of the input, for people and for comparisons: "components" 17.
  std::vector<std::pair<std::string, double>> figures = {};
};

struct Workload {
  const char* name;
  const char* what;  // one line, for the list
  const char* unit;  // of the work, plural: "edges"
  std::vector<Parameter> parameters;
  // Bytes of memory at the peak, from above; 0 where only `run` knows the input, and asks itself.
  std::uint64_t (*needed)(const Settings&, int workers);
  // Within Team::run. Verifies each run's answer.
  Result (*run)(Team&, const Settings&, Conditions&);
};

[[nodiscard]] std::span<const Workload* const> workloads();

}  // namespace atl::kernels
