#include "perf_group.hpp"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace atl::runtime {

PerfGroup::~PerfGroup() {
  // Members before the leader: closing the leader first makes each of them a separate group.
  for (auto it = descriptors_.rbegin(); it != descriptors_.rend(); ++it) close(*it);
}

int PerfGroup::open(const std::vector<PerfEvent>& events) {
  for (const PerfEvent& event : events) {
    perf_event_attr attr{};
    attr.size = sizeof attr;
    attr.type = event.type;
    attr.config = event.config;
    attr.read_format =
        PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    attr.exclude_kernel = 1;
    attr.exclude_hv = 1;
    const int leader = descriptors_.empty() ? -1 : descriptors_.front();
    const long opened = syscall(SYS_perf_event_open, &attr, 0, -1, leader, PERF_FLAG_FD_CLOEXEC);
    if (opened < 0) {
      const int error = errno;
      PerfGroup closed;
      std::swap(descriptors_, closed.descriptors_);
      return error;
    }
    descriptors_.push_back(static_cast<int>(opened));
  }
  for (const int descriptor : descriptors_) pages_.emplace_back(descriptor);
  return 0;
}

std::optional<GroupReading> PerfGroup::read() const {
  if (descriptors_.empty()) return std::nullopt;
  std::array<std::uint64_t, kGroupWords> words{};
  ssize_t bytes = 0;
  do {
    bytes = ::read(descriptors_.front(), words.data(), sizeof words);
  } while (bytes < 0 && errno == EINTR);
  if (bytes < 0) return std::nullopt;
  return decode_group(std::span(words).first(static_cast<std::size_t>(bytes) / sizeof words[0]),
                      descriptors_.size());
}

// The kernel puts the events of a group on the PMU together, so the leader's times are all events'.
std::optional<GroupReading> PerfGroup::read_own() const {
  GroupReading reading;
  for (std::size_t at = 0; at < pages_.size(); ++at) {
    const std::optional<Counter> counter = pages_[at].read();
    if (!counter) return read();
    reading.values[at] = counter->value;
    if (at > 0) continue;
    reading.enabled_ns = counter->enabled_ns;
    reading.running_ns = counter->running_ns;
  }
  if (pages_.empty()) return std::nullopt;
  return reading;
}

int FillCounters::open(const FillTable& table) {
  std::array<std::vector<PerfEvent>, kMaxFillGroups> wanted;
  for (const FillEvent& event : table.events) {
    // Both vendors have the event in bits 0 to 7 and the unit mask in bits 8 to 15.
    const std::uint64_t config = std::uint64_t{event.umask} << 8 | event.event;
    wanted[event.group].push_back({PERF_TYPE_RAW, config});
  }
  for (const std::vector<PerfEvent>& events : wanted) {
    if (events.empty()) continue;
    PerfGroup group;
    if (const int error = group.open(events); error != 0) {
      groups_.clear();
      return error;
    }
    groups_.push_back(std::move(group));
  }
  return 0;
}

template <class Read>
std::optional<FillReading> FillCounters::read_groups(Read&& read) const {
  if (groups_.empty()) return std::nullopt;
  FillReading reading;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const std::optional<GroupReading> group = read(groups_[i]);
    if (!group) return std::nullopt;
    reading[i] = *group;
  }
  return reading;
}

std::optional<FillReading> FillCounters::read() const {
  return read_groups([](const PerfGroup& group) { return group.read_own(); });
}

std::optional<FillReading> FillCounters::read_from_outside() const {
  return read_groups([](const PerfGroup& group) { return group.read(); });
}

std::string why_no_counters(int error, std::string_view paranoid) {
  while (!paranoid.empty() && paranoid.back() == '\n') paranoid.remove_suffix(1);
  switch (error) {
    case EACCES:
    case EPERM:
      return "n/a (not permitted, perf_event_paranoid is " + std::string(paranoid) +
             "); run 'sysctl kernel.perf_event_paranoid=2', or give the process CAP_PERFMON; a "
             "container's seccomp profile must let perf_event_open through";
    case ENOENT:
    case ENODEV:
    case EOPNOTSUPP:
      return "n/a (no hardware counters here, as in most virtual machines); run on the bare "
             "machine, or have the host pass its PMU to the guest";
    case ENOSYS: return "n/a (the kernel has no perf events); use one with CONFIG_PERF_EVENTS";
    case EMFILE: return "n/a (too many open files: 4 or 5 for each worker); raise 'ulimit -n'";
    default:
      return std::string("n/a (perf_event_open: ") + std::strerror(error) +
             "); see what 'perf stat' reports on this machine";
  }
}

}  // namespace atl::runtime
