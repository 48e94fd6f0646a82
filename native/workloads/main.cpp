// atoll-kernels: the workloads by which ARCAS ("Adaptive Runtime for Chiplet-Aware Scheduling",
// section 5) is judged, on Atoll's runtime and on others.
//
//   atoll-kernels gups --table-mib 256 --scheduler atoll --workers 2
#include <cstdio>
#include <exception>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/available.hpp"
#include "base/program.hpp"
#include "concurrency.hpp"
#include "options.hpp"
#include "team.hpp"
#include "workload.hpp"

namespace atl::kernels {
namespace {

void require_memory(const Workload& workload, std::uint64_t needed) {
  const std::uint64_t available = base::available_bytes();
  if (needed <= available) return;
  throw UsageFault(std::string(workload.name) + " needs " + gibibytes(needed) + " of memory, and " +
                   gibibytes(available) + " are available; make its input smaller");
}

// Null where nobody counts lines.
nlohmann::ordered_json fills_of(const std::vector<Lines>& runs) {
  if (runs.back().counted_by.empty()) return nullptr;
  nlohmann::ordered_json made = {{"source", runs.back().counted_by},
                                 {"chiplets", runs.back().chiplets}};
  for (const Lines& lines : runs) {
    nlohmann::ordered_json& run = made["runs"].emplace_back();
    for (std::size_t source = 0; source < kFillSources; ++source) {
      const std::string name(fill_source_name(static_cast<FillSource>(source)));
      run[name] = nullptr;
      if (lines.from[source]) run[name] = *lines.from[source];
    }
  }
  return made;
}

std::string run(const Options& options) {
  const Workload& workload = *options.workload;
  const std::uint64_t needed = workload.needed(options.settings, options.team.workers);
  require_memory(workload, needed);
  const std::unique_ptr<Team> team = make_team(options.team);
  Conditions conditions{.memory = {team->nodes(), options.arrays, options.pages},
                        .runs = options.runs,
                        .seed = options.seed,
                        .lines = [&] { return team->lines(); }};
  std::optional<Concurrency> concurrency;
  if (options.concurrency) conditions.concurrency = &concurrency.emplace();
  Result result;
  team->run([&] { result = workload.run(*team, options.settings, conditions); });

  nlohmann::ordered_json made = {
      {"format", "atoll/kernel"},
      {"version", 1},
      {"workload", workload.name},
      {"scheduler", options.team.scheduler},
      {"approach", nullptr},
      {"workers", team->workers()},
      {"arrays", name_of(options.arrays)},
      {"pages", name_of(options.pages)},
      {"seed", options.seed},
      {"parameters", options.settings.all()},
      {"make_s", conditions.make_s},
      {"runs_s", conditions.seconds},
      {"work", result.work},
      {"unit", workload.unit},
      {"per_s", result.work / median(conditions.seconds)},
      {"traffic_bytes", nullptr},
      {"peak_bytes", base::number_after("/proc/self/status", "VmHWM:") * 1024},
      {"fills", fills_of(conditions.fills)},
      {"figures", nlohmann::ordered_json::object()},
  };
  if (!options.team.approach.empty()) made["approach"] = options.team.approach;
  if (result.traffic_bytes) made["traffic_bytes"] = *result.traffic_bytes;
  for (const auto& [name, value] : result.figures) made["figures"][name] = value;
  if (concurrency) {
    made["concurrency"] = {{"every_s", Concurrency::kEverySeconds},
                           {"running", concurrency->running()},
                           {"threads_created", Concurrency::threads() + team->ended_threads()}};
  }
  return made.dump() + "\n";
}

std::string text_for(const Options& options) {
  switch (options.print) {
    case Options::Print::kHelp: return help();
    case Options::Print::kVersion: return "atoll-kernels " ATOLL_VERSION "\n";
    case Options::Print::kDescription: return description() + "\n";
    case Options::Print::kResult: break;
  }
  return run(options);
}

int serve(int argc, char** argv) {
  base::print(text_for(parse_options(argc, argv, base::allowed_cpus())));
  return 0;
}

int failed(const char* why, int status) {
  std::fprintf(stderr, "atoll-kernels: %s\n", why);
  return status;
}

}  // namespace
}  // namespace atl::kernels

int main(int argc, char** argv) {
  using namespace atl::kernels;
  try {
    return serve(argc, argv);
  } catch (const UsageFault& fault) {
    return failed(fault.what(), 2);
  } catch (const WrongAnswer& fault) {
    return failed(fault.what(), 1);
  } catch (const std::bad_alloc&) {
    return failed("malloc or mmap refused; make the input smaller, or the memory limit larger", 5);
  } catch (const std::exception& fault) {
    return failed(fault.what(), 5);
  }
}
