// Places against hwloc-calc: many random expressions on synthetic machines must name the CPUs
// that hwloc names. Seeded, so a failure comes again.

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "atoll/topology.hpp"
#include "fault.hpp"
#include "place_topology.hpp"
#include "places.hpp"

namespace atl::exec {
namespace {

constexpr std::size_t kExpressions = 1000;

class Expressions {
 public:
  explicit Expressions(unsigned seed) : random_(seed) {}

  // What hwloc-calc takes on one line: one to four places.
  std::vector<std::string> next() {
    std::vector<std::string> places;
    for (std::size_t count = 1 + below(4); places.size() < count;) {
      std::string place = places.empty() ? "" : pick({"", "", "~", "x", "^"});
      switch (below(10)) {
        case 0: place += pick({"all", "root"}); break;
        case 1: place += hex(); break;
        default: place += chain(); break;
      }
      places.push_back(place);
    }
    return places;
  }

 private:
  std::size_t below(std::size_t end) {
    return std::uniform_int_distribution<std::size_t>(0, end - 1)(random_);
  }

  std::string pick(const std::vector<std::string>& words) { return words[below(words.size())]; }

  // Types in the order of depth, so that chains go down; sometimes they do not.
  std::string chain() {
    static const std::vector<std::vector<std::string>> kByDepth{
        {"machine", "Machine"},
        {"package", "socket", "pack", "pa"},
        {"numanode", "node", "numa", "nu", "NUMANode"},
        {"die"},
        {"l3", "L3Cache", "l3u"},
        {"l2", "l2cache"},
        {"core", "Core", "co"},
        {"pu", "PU"}};
    std::string text;
    std::size_t depth = below(kByDepth.size());
    while (true) {
      text += pick(kByDepth[depth]) + ":" + index();
      const std::size_t step = 1 + below(4);
      if (depth + step >= kByDepth.size() || below(3) == 0) {
        return text;
      }
      depth += step;
      text += ".";
    }
  }

  std::string index() {
    const std::size_t first = below(5);
    switch (below(8)) {
      case 0: return pick({"all", "odd", "even"});
      case 1: return std::to_string(first) + "-" + std::to_string(first + below(3));
      case 2: return std::to_string(first) + "-";
      case 3: return std::to_string(first) + ":" + std::to_string(1 + below(3));
      default: return std::to_string(first);
    }
  }

  std::string hex() {
    constexpr const char* kDigits = "0123456789abcdefABCDEF";
    const auto digits = [&](std::size_t most) {
      std::string text;
      for (std::size_t count = 1 + below(most); text.size() < count;) {
        text += kDigits[below(22)];
      }
      return text;
    };
    switch (below(4)) {
      case 0: return "0x" + digits(8) + ",0x" + digits(8);
      case 1: return "0x" + digits(4) + ",," + digits(8);
      case 2: return digits(3) + "," + digits(8);
      default: return "0x" + digits(20);
    }
  }

  std::mt19937 random_;
};

// hwloc-calc reads a line of locations at a time and answers with a CPU set.
std::vector<std::string> ask_hwloc(const std::string& synthetic,
                                   const std::vector<std::vector<std::string>>& lines) {
  const std::string input = testing::TempDir() + "exec_places_" + std::to_string(getpid());
  std::ofstream file(input);
  for (const auto& places : lines) {
    for (const std::string& place : places) {
      file << place << ' ';
    }
    file << '\n';
  }
  file.close();
  const std::string command = std::string(HWLOC_CALC) + " -i '" + synthetic + "' -q --taskset < '" +
                              input + "' 2>/dev/null";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), &pclose);
  std::vector<std::string> answers;
  std::array<char, 4096> line{};
  while (std::fgets(line.data(), line.size(), pipe.get()) != nullptr) {
    std::string answer = line.data();
    answer.erase(answer.find_last_not_of('\n') + 1);
    if (answer.starts_with("0x")) {  // not "Waiting for locations to process on stdin..."
      answers.push_back(answer);
    }
  }
  std::remove(input.c_str());
  return answers;
}

class PlacesAgainstHwloc : public testing::TestWithParam<const char*> {};

TEST_P(PlacesAgainstHwloc, NameTheSameCpus) {
  const std::string synthetic = GetParam();
  const std::string json = topology::discover("synthetic", synthetic);
  CpuSet everything;
  everything.insert_below(4096);
  const PlaceTopology machine = parse_machine(json, synthetic, everything);

  // Only what resolves here is asked: hwloc-calc 2.9 counts through 32 bits for a range that
  // begins behind the last object. That we refuse such places is exec_places_test's matter.
  std::vector<std::vector<std::string>> lines;
  std::vector<CpuSet> ours;
  Expressions expressions(20260);
  for (std::size_t i = 0; i < kExpressions; ++i) {
    const std::vector<std::string> places = expressions.next();
    try {
      ours.push_back(resolve_places(machine, places));
      lines.push_back(places);
    } catch (const Fault&) {
      continue;
    }
  }
  ASSERT_GT(lines.size(), kExpressions / 8) << "most expressions must be meaningful here";

  const std::vector<std::string> answers = ask_hwloc(synthetic, lines);
  ASSERT_EQ(answers.size(), lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::vector<std::string> theirs{answers[i]};
    EXPECT_EQ(ours[i].to_string(), resolve_places(machine, theirs).to_string())
        << testing::PrintToString(lines[i]) << " is " << answers[i] << " on " << synthetic;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Synthetic, PlacesAgainstHwloc,
    testing::Values("pack:2 l3:4 l2:2 core:1 pu:2", "pack:2 numa:2 die:2 l3:2 l2:2 core:2 pu:1",
                    "numa:4 pack:1 l3:1 l2:4 core:1 pu:2", "pack:2 [numa] l3:3 l2:3 core:1 pu:1",
                    "pack:3 die:2 l3:1 [numa] l2:2 core:2 pu:1",
                    "pack:2 core:4 pu:2(indexes=0,8,1,9,2,10,3,11,4,12,5,13,6,14,7,15)"));

}  // namespace
}  // namespace atl::exec
