#include "thread_usage.hpp"

#include <unistd.h>

#include <string>

#include "text.hpp"

namespace atl::runtime {

namespace {

// Fields of stat, counted after the closing bracket of the name, which may contain anything.
constexpr std::size_t kMinorFaults = 7;  // field 10 of proc(5)
constexpr std::size_t kMajorFaults = 9;
constexpr std::size_t kUserTicks = 11;
constexpr std::size_t kSystemTicks = 12;

}  // namespace

ThreadUsage thread_usage(const ThreadFiles& files) {
  ThreadUsage usage;
  const std::size_t name_end = files.stat.rfind(')');
  if (name_end != std::string_view::npos) {
    const std::vector<std::string_view> fields = words_of(files.stat.substr(name_end + 1));
    if (fields.size() > kSystemTicks) {
      usage.minor_faults = whole_number(fields[kMinorFaults]);
      usage.major_faults = whole_number(fields[kMajorFaults]);
      const auto user = whole_number(fields[kUserTicks]);
      const auto system = whole_number(fields[kSystemTicks]);
      if (user && system) {
        usage.cpu_s =
            static_cast<double>(*user + *system) / static_cast<double>(sysconf(_SC_CLK_TCK));
      }
    }
  }
  // In ns if the kernel has it: stat's ticks are 10 ms.
  const std::vector<std::string_view> times = words_of(files.schedstat);
  if (times.size() == 3) {
    if (const auto run = whole_number(times[0])) usage.cpu_s = static_cast<double>(*run) * 1e-9;
    if (const auto wait = whole_number(times[1])) {
      usage.run_delay_s = static_cast<double>(*wait) * 1e-9;
    }
  }
  if (const auto count = value_of(files.status, "voluntary_ctxt_switches")) {
    usage.voluntary_switches = whole_number(*count);
  }
  if (const auto count = value_of(files.status, "nonvoluntary_ctxt_switches")) {
    usage.involuntary_switches = whole_number(*count);
  }
  if (const auto count = value_of(files.sched, "se.nr_migrations")) {
    usage.cpu_migrations = whole_number(*count);
  }
  return usage;
}

ThreadUsage usage_of_thread(int tid) {
  const std::string folder = "/proc/self/task/" + std::to_string(tid) + "/";
  const std::string stat = read_text(folder + "stat").value_or("");
  const std::string status = read_text(folder + "status").value_or("");
  const std::string schedstat = read_text(folder + "schedstat").value_or("");
  const std::string sched = read_text(folder + "sched").value_or("");
  return thread_usage({stat, status, schedstat, sched});
}

}  // namespace atl::runtime
