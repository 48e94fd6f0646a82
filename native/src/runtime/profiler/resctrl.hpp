// L3 occupancy and memory bandwidth of the workers, by L3, from resctrl's monitors if resctrl is
// mounted (the kernel's Documentation/filesystems/resctrl.rst). This never mounts it.
//
// With sufficient rights (root), the workers get their own monitoring group, removed at the end.
// Otherwise it reads their present group, whose counts include everything that shares it. Tested on
// directory trees made after that document; none of our machines has the feature.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "atoll/runtime/profile.hpp"

namespace atl::runtime {

// The mount point of resctrl, from /proc/self/mountinfo. Pure.
[[nodiscard]] std::optional<std::string> find_resctrl(std::string_view mountinfo);

// The folder whose monitors count a thread: a monitoring group before the control group around it.
[[nodiscard]] std::optional<std::string> monitors_of(const std::string& mount, int tid);

// resctrl's number of an L3 -> the values of its monitors; 'Unavailable' and the like are empty.
[[nodiscard]] std::map<int, L3Profile> read_monitors(const std::string& group);

// resctrl's numbers of the L3s that these CPUs have (the caches' ids), each once; `folder`:
// /sys/devices/system/cpu. Empty if one of the CPUs has none there.
[[nodiscard]] std::vector<int> l3s_of_cpus(const std::string& folder, std::span<const int> cpus);

// The name of a monitoring group that no other runtime has, in this or another process: of two that
// shared one, the first to end would remove it for both.
[[nodiscard]] std::string own_group_name();

// From start to end of a runtime. `read` may run beside any other member; those are not
// thread-safe.
class L3Monitor {
 public:
  // `mount`: from find_resctrl. `name`: from own_group_name. `tid`: a thread of this process, used
  // to find the present group if a new one cannot be made.
  L3Monitor(const std::string& mount, const std::string& name, int tid);
  L3Monitor(const L3Monitor&) = delete;
  L3Monitor& operator=(const L3Monitor&) = delete;
  ~L3Monitor();

  // Counts a worker's thread from now on; does nothing without a group of our own.
  void add_thread(int tid);
  // Memory traffic since the start, occupancy now; by L3. Empty if nothing is monitored.
  [[nodiscard]] std::vector<L3Profile> read() const;
  // Whether it counts the workers and nothing else.
  [[nodiscard]] bool counts_workers_alone() const noexcept { return own_ && remark_.empty(); }
  // A remark on the counts, or empty.
  [[nodiscard]] const std::string& remark() const noexcept { return remark_; }

 private:
  std::string group_;
  bool own_ = false;
  std::string remark_;
  std::map<int, L3Profile> start_;
};

}  // namespace atl::runtime
