#include "options.hpp"

#include <getopt.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

namespace atl::workloads {
namespace {

enum Flag : int {
  kScheduler = 256,
  kVariant,
  kIndex,
  kDataset,
  kRecords,
  kGroups,
  kThreads,
  kKeyStep,
  kSeed,
  kRuns,
  kPin,
  kKeep,
  kNoCheck,
  kSave,
  kHelp,
  kVersion,
};

constexpr option kLongOptions[] = {
    {"scheduler", required_argument, nullptr, kScheduler},
    {"variant", required_argument, nullptr, kVariant},
    {"index", required_argument, nullptr, kIndex},
    {"dataset", required_argument, nullptr, kDataset},
    {"records", required_argument, nullptr, kRecords},
    {"groups", required_argument, nullptr, kGroups},
    {"threads", required_argument, nullptr, kThreads},
    {"key-step", required_argument, nullptr, kKeyStep},
    {"seed", required_argument, nullptr, kSeed},
    {"runs", required_argument, nullptr, kRuns},
    {"pin", required_argument, nullptr, kPin},
    {"keep", no_argument, nullptr, kKeep},
    {"no-check", no_argument, nullptr, kNoCheck},
    {"save", required_argument, nullptr, kSave},
    {"help", no_argument, nullptr, kHelp},
    {"version", no_argument, nullptr, kVersion},
    {nullptr, 0, nullptr, 0},
};

[[noreturn]] void fail(const std::string& message) {
  throw UsageFault(message + " (see atoll-workload --help)");
}

std::uint64_t number(const char* flag, std::string_view text, std::uint64_t least,
                     std::uint64_t most) {
  std::uint64_t found = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), found);
  if (fault != std::errc() || end != text.data() + text.size() || found < least || found > most) {
    fail(std::string(flag) + " " + std::string(text) + ": not a number from " +
         std::to_string(least) + " to " + std::to_string(most));
  }
  return found;
}

// CPUs with commas between, in their order.
std::vector<int> cpu_list(std::string_view text) {
  std::vector<int> found;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    found.push_back(
        static_cast<int>(number("--pin", text.substr(begin, end - begin), 0, kMostCpus - 1)));
    begin = end + 1;
  }
  return found;
}

// The value with this name.
template <class Value>
Value named(const char* flag, std::string_view text, std::initializer_list<Value> values) {
  std::string known;
  for (const Value value : values) {
    if (text == name_of(value)) return value;
    known += (known.empty() ? "" : ", ") + std::string(name_of(value));
  }
  fail(std::string(flag) + (*flag == '\0' ? "" : " ") + std::string(text) +
       ": unknown; there are " + known);
}

// A tenth of the paper's 100 million records with a million groups; for the joins a sixteenth of
// their 16 and 256 million rows.
DataSpec default_data(Workload workload) {
  switch (workload) {
    case Workload::kMedian: return {Dataset::kMovingCluster, 10'000'000, 100'000, 1};
    case Workload::kCount: return {Dataset::kZipf, 10'000'000, 100'000, 1};
    case Workload::kJoin:
    case Workload::kIndexJoin: return {Dataset::kSequential, 16'000'000, 1'000'000, 1};
  }
  return {};
}

}  // namespace

const char* name_of(Workload workload) {
  constexpr const char* kNames[] = {"w1", "w2", "w3", "w4"};
  return kNames[static_cast<int>(workload)];
}
const char* name_of(Scheduler scheduler) {
  return scheduler == Scheduler::kPlain ? "plain" : "atoll";
}
const char* name_of(Variant variant) { return variant == Variant::kPaper ? "paper" : "fast"; }
const char* name_of(IndexKind index) {
  constexpr const char* kNames[] = {"art", "masstree", "btree", "skiplist"};
  return kNames[static_cast<int>(index)];
}

Options parse_options(int argc, char** argv, int cpus) {
  Options options;
  options.threads = std::min(cpus, kMostThreads);
  std::optional<IndexKind> index;
  std::optional<Dataset> dataset;
  std::optional<std::uint64_t> records;
  std::optional<std::uint64_t> groups;
  std::uint64_t seed = 1;
  optind = 0;  // glibc: restart
  opterr = 0;
  int flag;
  while ((flag = getopt_long(argc, argv, ":", kLongOptions, nullptr)) != -1) {
    switch (flag) {
      case kScheduler:
        options.scheduler = named("--scheduler", optarg, {Scheduler::kPlain, Scheduler::kAtoll});
        break;
      case kVariant:
        options.variant = named("--variant", optarg, {Variant::kPaper, Variant::kFast});
        break;
      case kIndex:
        index =
            named("--index", optarg,
                  {IndexKind::kArt, IndexKind::kMasstree, IndexKind::kBTree, IndexKind::kSkipList});
        break;
      case kDataset:
        dataset = dataset_named(optarg);
        if (!dataset) {
          fail("--dataset " + std::string(optarg) + ": unknown; there are " +
               std::string(dataset_names()));
        }
        break;
      case kRecords: records = number("--records", optarg, 1, kMostRecords); break;
      case kGroups: groups = number("--groups", optarg, 1, kMostRecords); break;
      case kThreads:
        options.threads = static_cast<int>(number("--threads", optarg, 1, kMostThreads));
        break;
      case kKeyStep: options.key_step = number("--key-step", optarg, 1, kMostKeyStep); break;
      case kSeed: seed = number("--seed", optarg, 0, INT64_MAX); break;
      case kRuns: options.runs = static_cast<int>(number("--runs", optarg, 1, kMostRuns)); break;
      case kPin: options.pin = cpu_list(optarg); break;
      case kKeep: options.keep = true; break;
      case kNoCheck: options.check = false; break;
      case kSave: options.folder = optarg; break;
      case kHelp: options.help = true; return options;
      case kVersion: options.version = true; return options;
      case ':': fail(std::string(argv[optind - 1]) + ": a value is missing");
      default:
        fail(std::string(argv[optind - 1]) + ": unknown or ambiguous flag, or it takes no value");
    }
  }
  if (optind != argc - 1) fail("name one workload: w1, w2, w3 or w4");
  options.workload =
      named("", argv[optind],
            {Workload::kMedian, Workload::kCount, Workload::kJoin, Workload::kIndexJoin});
  if (options.keep && !joins(options.workload)) fail("--keep: only w3 and w4 join rows");
  if (index && options.workload != Workload::kIndexJoin)
    fail("--index " + std::string(name_of(*index)) + ": only w4 has an index");
  options.index = index.value_or(options.index);
  if (!options.pin.empty() && options.scheduler == Scheduler::kAtoll) {
    fail("--pin: only plain threads; Atoll binds its workers itself");
  }

  options.data = default_data(options.workload);
  // One given number keeps the default's ratio to the other.
  const std::uint64_t ratio = options.data.records / options.data.groups;
  options.data.dataset = dataset.value_or(options.data.dataset);
  options.data.seed = seed;
  if (records) options.data.groups = std::max<std::uint64_t>(*records / ratio, 1);
  if (groups && !records) options.data.records = std::min(*groups * ratio, kMostRecords);
  options.data.records = records.value_or(options.data.records);
  options.data.groups = groups.value_or(options.data.groups);
  if (options.data.groups > options.data.records) {
    fail("--groups " + std::to_string(options.data.groups) + ": more than the " +
         std::to_string(options.data.records) + " records");
  }
  return options;
}

}  // namespace atl::workloads
