#include "options.hpp"

#include <getopt.h>

#include <cstring>
#include <utility>

#include "fault.hpp"
#include "places.hpp"

namespace atl::exec {
namespace {

// Flags that have no short form.
enum LongOnly : int { kMalloc = 256, kNoThp, kDryRun, kMachine, kListMallocs, kHelp, kVersion };

constexpr option kLongOptions[] = {
    {"cpunodebind", required_argument, nullptr, 'N'},
    {"physcpubind", required_argument, nullptr, 'C'},
    {"membind", required_argument, nullptr, 'm'},
    {"interleave", required_argument, nullptr, 'i'},
    {"weighted-interleave", required_argument, nullptr, 'w'},
    {"preferred", required_argument, nullptr, 'p'},
    {"preferred-many", required_argument, nullptr, 'P'},
    {"localalloc", no_argument, nullptr, 'l'},
    {"malloc", required_argument, nullptr, kMalloc},
    {"no-thp", no_argument, nullptr, kNoThp},
    {"dry-run", no_argument, nullptr, kDryRun},
    {"machine", required_argument, nullptr, kMachine},
    {"list-mallocs", no_argument, nullptr, kListMallocs},
    {"help", no_argument, nullptr, kHelp},
    {"version", no_argument, nullptr, kVersion},
    {nullptr, 0, nullptr, 0},
};
// '+': stop at the first operand, which may be the command. ':': report a missing value as ':'.
constexpr const char* kShortOptions = "+:N:C:m:i:w:p:P:l";

struct ModeName {
  int letter;
  MemoryMode mode;
  const char* name;
};
constexpr ModeName kModes[] = {
    {'m', MemoryMode::kBind, "--membind"},
    {'i', MemoryMode::kInterleave, "--interleave"},
    {'w', MemoryMode::kWeightedInterleave, "--weighted-interleave"},
    {'p', MemoryMode::kPreferred, "--preferred"},
    {'P', MemoryMode::kPreferredMany, "--preferred-many"},
    {'l', MemoryMode::kLocal, "--localalloc"},
};

[[noreturn]] void fail(const std::string& message) {
  throw Fault(message + " (see atoll-exec --help)");
}

// Returns the flag that getopt has just rejected, as the user wrote it.
std::string refused_flag(char** argv) {
  if (optopt > 0 && optopt < 256) {
    const std::string word = argv[optind - 1];
    return word.starts_with("--") ? word : std::string("-") + static_cast<char>(optopt);
  }
  return argv[optind - 1];
}

void add_memory(Options& options, int letter, std::string nodes) {
  for (const ModeName& known : kModes) {
    if (known.letter == letter) {
      if (options.memory) {
        fail("conflicting memory policies: " + options.memory->flag + " and " + known.name);
      }
      options.memory = MemoryFlag{known.mode, std::move(nodes), known.name};
    }
  }
}

// Resolves numactl's 'same' to the previous node list of the command line.
std::string node_list(const char* text, std::string& previous) {
  if (std::strcmp(text, "same") == 0) {
    if (previous.empty()) {
      fail("'same' needs a node list before it");
    }
    return previous;
  }
  previous = text;
  return text;
}

// Either places, '--' and the command, or the command alone.
void take_operands(Options& options, char** rest, bool after_separator) {
  if (!after_separator && *rest != nullptr && looks_like_place(*rest)) {
    while (*rest != nullptr && std::strcmp(*rest, "--") != 0) {
      if ((*rest)[0] == '-') {
        fail(std::string(*rest) + ": flags come before places");
      }
      options.places.emplace_back(*rest++);
    }
    if (*rest == nullptr) {
      fail("'--' is missing between places and command");
    }
    ++rest;
  }
  if (*rest == nullptr) {
    fail("no command given");
  }
  options.command = rest;
}

}  // namespace

Options parse_options(int argc, char** argv) {
  Options options;
  std::string previous_nodes;
  optind = 0;  // glibc: restart, including the scan inside a cluster of letters
  opterr = 0;
  int flag;
  while ((flag = getopt_long(argc, argv, kShortOptions, kLongOptions, nullptr)) != -1) {
    switch (flag) {
      case 'N': options.cpu_flags.push_back({true, node_list(optarg, previous_nodes)}); break;
      case 'C': options.cpu_flags.push_back({false, optarg}); break;
      case 'l': add_memory(options, flag, ""); break;
      case kMalloc: options.malloc = optarg; break;
      case kNoThp: options.no_thp = true; break;
      case kDryRun: options.dry_run = true; break;
      case kMachine: options.machine_file = optarg; break;
      case kListMallocs: options.list_mallocs = true; return options;
      case kHelp: options.help = true; return options;
      case kVersion: options.version = true; return options;
      case ':': fail(refused_flag(argv) + ": a value is missing");
      case '?': fail(refused_flag(argv) + ": unknown or ambiguous flag, or it takes no value");
      default: add_memory(options, flag, node_list(optarg, previous_nodes)); break;
    }
  }
  const bool after_separator = optind > 1 && std::strcmp(argv[optind - 1], "--") == 0;
  take_operands(options, argv + optind, after_separator);
  return options;
}

}  // namespace atl::exec
