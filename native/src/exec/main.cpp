// atoll-exec: bind to CPUs and memory, then become the command.
//
//   atoll-exec [FLAGS] [PLACE...] -- CMD [ARG...]
//
// It takes numactl's flags with numactl's meanings and hwloc's places (hwloc(7)), preloads an
// allocator, turns huge pages off and calls execvp, so the pid stays the same. It guarantees:
//   - the command runs with the requested placement or not at all: exit 125 and one line on
//     stderr (126 if it cannot be executed, 127 if it is not found, as with env);
//   - plain flags cost as much as in numactl: only places load hwloc, and most of them do not.
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <optional>
#include <string>

#include "allocator.hpp"
#include "binding.hpp"
#include "fault.hpp"
#include "options.hpp"
#include "place_topology.hpp"
#include "places.hpp"

namespace atl::exec {
namespace {

constexpr const char* kHelp =
    R"(Usage: atoll-exec [FLAGS] [PLACE...] -- CMD [ARG...]
       atoll-exec [FLAGS] CMD [ARG...]         (without places, like numactl)

Run a command on the given CPUs and memory nodes (it keeps the pid).

CPUs (OS numbers; the last -N or -C wins)
  -N, --cpunodebind NODES        run on the CPUs of these NUMA nodes
  -C, --physcpubind CPUS         run on these CPUs
Memory (at most one flag; OS numbers of NUMA nodes)
  -m, --membind NODES            allocate from these nodes only
  -i, --interleave NODES         allocate from these nodes round robin
  -w, --weighted-interleave NODES   the same, by kernel weights (Linux 6.9+)
  -p, --preferred NODE           prefer this node
  -P, --preferred-many NODES     prefer these nodes (Linux 5.15+)
  -l, --localalloc               prefer the node on which the thread runs
  Lists use numactl's syntax: 0,2-3  all  !1 (all except 1)  +0 (relative to
  the allowed ones)  netdev:eth0  file:PATH  ip:HOST  block:PATH  pci:BUS  same
Process
  --malloc NAME    preload jemalloc, tcmalloc, mimalloc or tbbmalloc;
                   'system' removes these preloads
  --list-mallocs   list the allocators that can be loaded: NAME, tab, PATH
  --no-thp         disable transparent huge pages
  --machine FILE   resolve places in this file ('atoll topo --json') instead of
                   the live system; use it if the system hides its chiplets
  --dry-run        check and print the settings without starting CMD
  --help, --version

Places (logical numbers, as in 'atoll topo'; end them with '--')
  chiplet:3  core:2-3  numa:1  package:0.l3:1  pu:0,4-5  core:all  core:odd
  0xff  all        added up; ~PLACE subtracts, xPLACE intersects, ^PLACE xors
  With -N or -C as well, the command gets the CPUs that are in both.

Exit status: that of CMD; 125 if atoll-exec failed, 126 if CMD cannot be
executed, 127 if CMD is not found.

Example: atoll-exec -m 0 --malloc jemalloc chiplet:0-1 -- ./server --port 8080
)";

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// What to change for the command; nullopt leaves a setting unchanged.
struct Changes {
  std::optional<CpuSet> cpus;
  std::optional<std::string> preload;  // empty: unset the variable
};

CpuSet cpus_of_places(const Options& options, const CpuSet& usable) {
  const bool live = options.machine_file.empty();
  if (live) {
    if (const auto machine = quick_machine(levels_of(options.places), usable)) {
      return resolve_places(*machine, options.places);
    }
  }
  const std::string json = live ? live_machine() : read_machine_file(options.machine_file);
  const std::string where = live ? "the live machine" : "--machine " + options.machine_file;
  return resolve_places(parse_machine(json, where, usable), options.places);
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    text += (text.empty() ? "" : " ") + word;
  }
  return text;
}

std::optional<CpuSet> wanted_cpus(const Options& options) {
  std::optional<CpuSet> cpus;
  for (const CpuFlag& flag : options.cpu_flags) {
    cpus = cpus_of_flag(flag);
  }
  if (options.places.empty()) {
    return cpus;
  }
  const CpuSet usable = current_cpus();
  CpuSet placed = cpus_of_places(options, usable);
  const std::string places = joined(options.places);
  if (placed.empty()) {
    throw Fault("places " + places + ": no CPU is left; name at least one");
  }
  if (cpus) {
    const CpuSet before = placed;
    placed &= *cpus;
    if (placed.empty()) {
      throw Fault("places " + places + ": CPUs " + before.to_string() + " and those of -N or -C, " +
                  cpus->to_string() + ", have none in common");
    }
  }
  CpuSet outside = placed;
  outside -= usable;
  if (!outside.empty()) {
    throw Fault("places " + places + ": CPUs " + outside.to_string() +
                " are offline, or outside this process's mask or cgroup; allowed CPUs: " +
                usable.to_string() + " (a last place 'xall' keeps to them)");
  }
  return placed;
}

Changes plan(const Options& options) {
  Changes changes;
  changes.cpus = wanted_cpus(options);
  if (!options.malloc.empty()) {
    changes.preload =
        preload_for(options.malloc, environment("LD_PRELOAD"), environment("LD_LIBRARY_PATH"));
  }
  return changes;
}

void apply(const Options& options, const Changes& changes) {
  if (changes.cpus) {
    // A node means its available CPUs, as in numactl; all other CPUs were named one by one.
    const bool by_node = options.places.empty() && options.cpu_flags.back().by_node;
    bind_cpus(*changes.cpus, /*all_of_them=*/!by_node);
  }
  if (options.memory) {
    set_memory_policy(*options.memory);
  }
  if (options.no_thp) {
    disable_huge_pages();
  }
  if (changes.preload) {
    const bool failed = changes.preload->empty()
                            ? unsetenv("LD_PRELOAD") != 0
                            : setenv("LD_PRELOAD", changes.preload->c_str(), 1) != 0;
    if (failed) {
      throw Fault(std::string("LD_PRELOAD: ") + std::strerror(errno));
    }
  }
}

[[noreturn]] void fail_command(const std::string& command, int error) {
  throw Fault(command + ": " + std::strerror(error),
              error == ENOENT ? kExitNotFound : kExitNotExecutable);
}

// Where execvp would find the command. Throws Fault as the failed execvp would.
std::string find_command(const std::string& command) {
  int error = ENOENT;
  const auto is_executable = [&error](const std::string& path) {
    struct stat found{};
    if (stat(path.c_str(), &found) != 0) {
      error = errno == EACCES ? EACCES : error;
      return false;
    }
    if (!S_ISREG(found.st_mode) || access(path.c_str(), X_OK) != 0) {
      error = EACCES;
      return false;
    }
    return true;
  };
  if (command.find('/') != std::string::npos) {
    if (is_executable(command)) {
      return command;
    }
    fail_command(command, error);
  }
  const char* const path = std::getenv("PATH");
  std::string folders = path == nullptr ? "/bin:/usr/bin" : path;  // execvp's own default
  folders += ':';
  for (std::size_t start = 0, end; !command.empty() && start < folders.size(); start = end + 1) {
    end = folders.find(':', start);
    const std::string folder = folders.substr(start, end - start);
    const std::string candidate = folder.empty() ? command : folder + "/" + command;
    if (is_executable(candidate)) {
      return candidate;
    }
  }
  fail_command(command, error);
}

// Shows what the kernel reports after `apply`, not what the user asked for: a dry run does
// everything except the last step.
void show(const Options& options, const Changes& changes) {
  std::string text = "cpus     " + current_cpus().to_string() + "\n";
  text += "memory   " + describe_memory_policy() + "\n";
  text += std::string("thp      ") + (huge_pages_disabled() ? "disabled" : "as the system has it") +
          "\n";
  text += "env      ";
  if (!changes.preload) {
    text += "unchanged";
  } else if (changes.preload->empty()) {
    text += "LD_PRELOAD unset";
  } else {
    text += "LD_PRELOAD=" + *changes.preload;
  }
  text += "\ncommand  " + find_command(options.command[0]);
  for (char** argument = options.command + 1; *argument != nullptr; ++argument) {
    text += std::string(" ") + *argument;
  }
  std::puts(text.c_str());
}

int run(int argc, char** argv) {
  const Options options = parse_options(argc, argv);
  if (options.list_mallocs) {
    const auto all = loadable_allocators(environment("LD_LIBRARY_PATH"));
    for (const FoundAllocator& found : all) {
      std::printf("%s\t%s\n", std::string(found.name).c_str(), found.path.c_str());
    }
    if (all.empty()) {
      std::fputs(
          "atoll-exec: no allocator that --malloc knows is installed; install for example "
          "the package libjemalloc2\n",
          stderr);
    }
  } else if (options.help || options.version) {
    std::fputs(options.help ? kHelp : "atoll-exec " ATOLL_VERSION "\n", stdout);
  } else {
    const Changes changes = plan(options);
    apply(options, changes);
    if (!options.dry_run) {
      execvp(options.command[0], options.command);
      fail_command(options.command[0], errno);
    }
    show(options, changes);
  }
  // Where each line is written at once, an earlier one has failed.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    throw Fault(std::string("standard output: ") + std::strerror(errno));
  }
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace atl::exec

int main(int argc, char** argv) {
  try {
    return atl::exec::run(argc, argv);
  } catch (const atl::exec::Fault& fault) {
    std::fprintf(stderr, "atoll-exec: %s\n", fault.what());
    return fault.exit_status();
  } catch (const std::exception& fault) {
    std::fprintf(stderr, "atoll-exec: internal error (a bug in atoll-exec): %s\n", fault.what());
    return atl::exec::kExitOwnFailure;
  }
}
