#include "options.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

namespace atl::kernels {
namespace {

constexpr std::uint64_t kMostWorkers = 1024;
constexpr std::uint64_t kMostRuns = 1000;

constexpr const char* kProgram = "atoll-kernels";

[[noreturn]] void fail(const std::string& message) { fail_usage(kProgram, message); }

// For every workload.
const std::vector<Parameter>& common() {
  static const std::vector<Parameter> parameters = {
      {"scheduler", "atoll", "who runs its loops"},
      {"approach", "", "of atoll: how its workers spread over chiplets (the runtime's default)"},
      {"spread", "", "of atoll: the number of chiplets that its workers use", 1, kMostWorkers},
      {"interval-ms", "100", "of atoll: time between two decisions of its approach", 1, 3'600'000},
      {"workers", "", "the number of workers (the CPUs that it may use)", 1, kMostWorkers},
      {"arrays",
       "partitioned",
       "where its arrays are: a part near each worker, all on the first node, pages in turn",
       0,
       0,
       {"partitioned", "local", "interleaved"}},
      {"pages",
       "transparent",
       "ask for huge pages, or leave it to the system",
       0,
       0,
       {"transparent", "normal"}},
      {"runs", "3", "timed runs on the same input", 1, kMostRuns},
      {"seed", "1", "of the input", 0, INT64_MAX},
      {"concurrency",
       "no",
       "count the threads that run, every 5 ms of the timed runs",
       0,
       0,
       {"no", "yes"}},
  };
  return parameters;
}

const Workload& named(std::string_view name) {
  std::string known;
  for (const Workload* const workload : workloads()) {
    if (name == workload->name) return *workload;
    known += (known.empty() ? "" : ", ") + std::string(workload->name);
  }
  fail(std::string(name) + ": not a workload; there are " + known);
}

std::string taken(Values& given, const char* name) {
  const auto found = given.extract(name);
  return found.empty() ? find(common(), name)->otherwise : found.mapped();
}

nlohmann::ordered_json described(const std::vector<Parameter>& parameters) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const Parameter& each : parameters) {
    all.push_back({{"name", each.name}, {"default", each.otherwise}, {"help", each.help}});
    if (each.most != 0) all.back().update({{"least", each.least}, {"most", each.most}});
    if (!each.choices.empty()) all.back()["choices"] = each.choices;
  }
  return all;
}

}  // namespace

const char* name_of(ArrayKind kind) {
  constexpr const char* kNames[] = {"local", "interleaved", "partitioned"};
  return kNames[static_cast<int>(kind)];
}
const char* name_of(Pages pages) { return pages == Pages::normal ? "normal" : "transparent"; }

Options parse_options(int argc, char** argv, int cpus) {
  Options options;
  if (argc < 2) fail("name a workload");
  const std::string_view first = argv[1];
  if (first == "--help") options.print = Options::Print::kHelp;
  if (first == "--version") options.print = Options::Print::kVersion;
  if (first == "--describe") options.print = Options::Print::kDescription;
  if (options.print != Options::Print::kResult) return options;

  options.workload = &named(first);
  Values given =
      read_flags(argc, argv, 2, kProgram, argv[1], {&common(), &options.workload->parameters});
  options.team.scheduler = taken(given, "scheduler");
  options.team.approach = taken(given, "approach");
  const std::string spread = taken(given, "spread");
  if (!spread.empty()) {
    if (!options.team.approach.empty()) fail("--approach, --spread: give one of them");
    options.team.approach = "static:" + spread;
  }
  if (given.contains("interval-ms") && options.team.scheduler != "atoll" &&
      options.team.scheduler != "arcas-printed") {
    fail("--interval-ms: only --scheduler atoll and arcas-printed move their workers");
  }
  options.team.interval = std::chrono::milliseconds(std::stol(taken(given, "interval-ms")));
  const std::string workers = taken(given, "workers");
  options.team.workers =
      workers.empty() ? std::clamp(cpus, 1, static_cast<int>(kMostWorkers)) : std::stoi(workers);
  const std::string arrays = taken(given, "arrays");
  for (const ArrayKind kind : {ArrayKind::kLocal, ArrayKind::kInterleaved}) {
    if (arrays == name_of(kind)) options.arrays = kind;
  }
  if (taken(given, "pages") == "normal") options.pages = Pages::normal;
  options.runs = std::stoi(taken(given, "runs"));
  options.seed = std::stoull(taken(given, "seed"));
  options.concurrency = taken(given, "concurrency") == "yes";
  for (const Parameter& each : options.workload->parameters) {
    const bool applies = each.applies == nullptr || each.applies(given);
    if (!applies && given.contains(each.name)) {
      fail("--" + std::string(each.name) + ": has no effect with these flags; leave it out");
    }
    if (applies) given.emplace(each.name, each.otherwise);
  }
  options.settings = Settings(std::move(given));
  return options;
}

std::string help() {
  std::string text =
      "Usage: atoll-kernels WORKLOAD [FLAGS]\n\n"
      "Runs a workload of the evaluation of ARCAS, verifies each answer, and prints one\n"
      "JSON object.\n\n";
  text += wrapped("Schedulers of this build: " + team_names() + ".", 0, 2);
  text += "\nFlags, with their defaults in parentheses\n" + help_of(common());
  text += "  --help, --version, --describe (the flags as JSON)\n";
  for (const Workload* const workload : workloads()) {
    text.append("\n").append(wrapped(std::string(workload->name) + ": " + workload->what, 0, 2));
    text += help_of(workload->parameters);
  }
  return text +
         "\nExample: atoll-kernels gups --table-mib 256 --workers 2\n"
         "Exit status: 0; 1 wrong answer; 2 wrong usage or too little memory; 5 another\n"
         "failure\n";
}

std::string description() {
  nlohmann::ordered_json all = {{"schedulers", team_names()}, {"parameters", described(common())}};
  for (const Workload* const workload : workloads()) {
    all["workloads"].push_back({{"name", workload->name},
                                {"what", workload->what},
                                {"unit", workload->unit},
                                {"parameters", described(workload->parameters)}});
  }
  return all.dump();
}

}  // namespace atl::kernels
