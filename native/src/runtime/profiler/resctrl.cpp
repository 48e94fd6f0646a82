#include "resctrl.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "text.hpp"

namespace atl::runtime {

namespace {

namespace fs = std::filesystem;

std::vector<std::string> folders_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code ignored;  // missing or unreadable: an empty list
  for (fs::directory_iterator it(folder, ignored), end; it != end; it.increment(ignored)) {
    if (it->is_directory(ignored)) names.push_back(it->path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool has_task(const std::string& group, int tid) {
  const std::string tasks = read_text(group + "/tasks").value_or("");
  const std::string wanted = std::to_string(tid);
  const std::vector<std::string_view> found = words_of(tasks);
  return std::find(found.begin(), found.end(), wanted) != found.end();
}

std::optional<std::uint64_t> monitor(const std::string& folder, const char* name) {
  const std::optional<std::string> text = read_text(folder + "/" + name);
  return text ? whole_number(*text) : std::nullopt;
}

std::optional<std::uint64_t> since(const std::optional<std::uint64_t>& before,
                                   const std::optional<std::uint64_t>& now) {
  // The kernel has reassigned a counter that falls to another group.
  if (!before || !now || *now < *before) return std::nullopt;
  return *now - *before;
}

}  // namespace

std::optional<std::string> find_resctrl(std::string_view mountinfo) {
  for (const std::string_view line : lines_of(mountinfo)) {
    const std::size_t dash = line.find(" - ");
    if (dash == std::string_view::npos) continue;
    const std::vector<std::string_view> mount = words_of(line.substr(0, dash));
    const std::vector<std::string_view> kind = words_of(line.substr(dash + 3));
    if (mount.size() > 4 && !kind.empty() && kind[0] == "resctrl") return std::string(mount[4]);
  }
  return std::nullopt;
}

std::optional<std::string> monitors_of(const std::string& mount, int tid) {
  std::vector<std::string> controls{mount};
  for (const std::string& name : folders_in(mount)) {
    if (name != "info" && name != "mon_data" && name != "mon_groups") {
      controls.push_back(mount + "/" + name);
    }
  }
  for (const std::string& control : controls) {
    for (const std::string& name : folders_in(control + "/mon_groups")) {
      const std::string group = control + "/mon_groups/" + name;
      if (has_task(group, tid)) return group;
    }
    if (has_task(control, tid)) return control;
  }
  return std::nullopt;
}

std::map<int, L3Profile> read_monitors(const std::string& group) {
  constexpr std::string_view kPrefix = "mon_L3_";
  std::map<int, L3Profile> read;
  for (const std::string& name : folders_in(group + "/mon_data")) {
    if (!name.starts_with(kPrefix)) continue;
    const auto number = whole_number(std::string_view(name).substr(kPrefix.size()));
    if (!number || *number > 0xffff) continue;
    const std::string folder = group + "/mon_data/" + name;
    const int l3 = static_cast<int>(*number);
    read[l3] = {l3, monitor(folder, "llc_occupancy"), monitor(folder, "mbm_total_bytes"),
                monitor(folder, "mbm_local_bytes")};
  }
  return read;
}

std::vector<int> l3s_of_cpus(const std::string& folder, std::span<const int> cpus) {
  std::vector<int> l3s;
  for (const int cpu : cpus) {
    const auto text = read_text(folder + "/cpu" + std::to_string(cpu) + "/cache/index3/id");
    const std::optional<std::uint64_t> number = text ? whole_number(*text) : std::nullopt;
    if (!number || *number > 0xffff) return {};
    const int l3 = static_cast<int>(*number);
    if (std::ranges::find(l3s, l3) == l3s.end()) l3s.push_back(l3);
  }
  return l3s;
}

std::string own_group_name() {
  static std::atomic<unsigned> serial{0};
  return "atoll-" + std::to_string(getpid()) + "-" +
         std::to_string(serial.fetch_add(1, std::memory_order_relaxed));
}

L3Monitor::L3Monitor(const std::string& mount, const std::string& name, int tid) {
  const std::string wanted = mount + "/mon_groups/" + name;
  // Only a process that was killed can have left a group of that name.
  if (mkdir(wanted.c_str(), 0755) == 0 || errno == EEXIST) {
    group_ = wanted;
    own_ = true;
  } else {
    const std::string why = std::strerror(errno);
    group_ = monitors_of(mount, tid).value_or("");
    remark_ = group_.empty()
                  ? "n/a (no resctrl group contains this process); see docs/inspect.md, resctrl"
                  : "of all tasks in " + group_ + " (no group of our own: " + why +
                        "); run as root to count the workers alone";
  }
  if (!group_.empty()) start_ = read_monitors(group_);
  if (!group_.empty() && start_.empty()) {
    remark_ = "n/a (resctrl is mounted, but the CPU monitors no L3)";
  }
}

L3Monitor::~L3Monitor() {
  if (own_) rmdir(group_.c_str());  // its tasks fall back to the group around it
}

void L3Monitor::add_thread(int tid) {
  if (!own_) return;
  // No O_CREAT: the file is the kernel's or not there.
  const int file = open((group_ + "/tasks").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  const std::string line = std::to_string(tid) + "\n";
  if (file < 0 || write(file, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    remark_ = std::string("worker threads are missing (") + std::strerror(errno) +
              "): they are in another resctrl control group";
  }
  if (file >= 0) close(file);
}

std::vector<L3Profile> L3Monitor::read() const {
  std::vector<L3Profile> all;
  if (group_.empty()) return all;
  for (const auto& [l3, now] : read_monitors(group_)) {
    const auto start = start_.find(l3);
    const L3Profile before = start == start_.end() ? L3Profile{} : start->second;
    all.push_back({l3, now.occupancy_bytes, since(before.memory_bytes, now.memory_bytes),
                   since(before.local_memory_bytes, now.local_memory_bytes)});
  }
  return all;
}

}  // namespace atl::runtime
