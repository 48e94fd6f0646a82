// The command line of atoll-workload.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "dataset.hpp"

namespace atl::workloads {

enum class Workload { kMedian, kCount, kJoin, kIndexJoin };  // w1 to w4
enum class Scheduler { kPlain, kAtoll };
enum class Variant { kPaper, kFast };
enum class IndexKind { kArt, kMasstree, kBTree, kSkipList };

inline constexpr int kMostThreads = 1024;
inline constexpr int kMostRuns = 1000;
inline constexpr int kMostCpus = 8192;
inline constexpr std::uint64_t kMostKeyStep = std::uint64_t{1} << 30;  // keys stay below 2^62

struct Options {
  Workload workload = Workload::kMedian;
  Scheduler scheduler = Scheduler::kPlain;
  Variant variant = Variant::kPaper;
  IndexKind index = IndexKind::kArt;  // of w4
  DataSpec data{};             // w3, w4: of the larger table; the smaller one has each key once
  std::uint64_t key_step = 1;  // between neighbouring keys
  int threads = 1;
  int runs = 3;
  std::vector<int> pin;  // plain: CPUs of the threads, in turn; empty: not bound
  bool keep = false;     // w3, w4: keep the joined rows
  bool check = true;     // the answer, by sorting
  std::string folder;    // where the input and the answer are saved; empty: nowhere
  bool help = false;
  bool version = false;
};

// The message says what is wrong and what to do, in one line.
class UsageFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Parses the command line. `cpus`: the default number of threads. Throws UsageFault.
[[nodiscard]] Options parse_options(int argc, char** argv, int cpus);

const char* name_of(Workload workload);
const char* name_of(Scheduler scheduler);
const char* name_of(Variant variant);
const char* name_of(IndexKind index);

// It joins two tables.
inline bool joins(Workload workload) {
  return workload == Workload::kJoin || workload == Workload::kIndexJoin;
}

}  // namespace atl::workloads
