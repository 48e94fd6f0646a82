// L3 occupancy and memory bandwidth of the workers, by L3, from resctrl's monitors where it is
// mounted (the kernel's Documentation/filesystems/resctrl.rst). Nothing is mounted here.
//
// With the right to do so (root), the workers get a monitoring group of their own, removed at the
// end. Else the group that they are in already is read, and its counts have all that shares it.
// Proved on trees made by hand after that document; no machine of ours has the feature.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "atoll/runtime/profile.hpp"

namespace atl::runtime {

// Where resctrl is mounted, from /proc/self/mountinfo. Pure.
[[nodiscard]] std::optional<std::string> find_resctrl(std::string_view mountinfo);

// The folder whose monitors count a thread: a monitoring group before the control group around it.
[[nodiscard]] std::optional<std::string> monitors_of(const std::string& mount, int tid);

// resctrl's number of an L3 -> what its monitors say; 'Unavailable' and the like are empty.
[[nodiscard]] std::map<int, L3Profile> read_monitors(const std::string& group);

// For a monitoring group that no other runtime has, of this process or another: the first of two
// that ended would remove the group of both.
[[nodiscard]] std::string own_group_name();

// From start to end of a runtime. Not thread-safe.
class L3Monitor {
 public:
  // `mount`: of find_resctrl. `name`: of own_group_name. `tid`: a thread of this process, by which
  // the present group is found if none may be made.
  L3Monitor(const std::string& mount, const std::string& name, int tid);
  L3Monitor(const L3Monitor&) = delete;
  L3Monitor& operator=(const L3Monitor&) = delete;
  ~L3Monitor();

  // A worker's thread is counted from now on; does nothing without a group of our own.
  void add_thread(int tid);
  // Memory traffic since the start, occupancy now; by L3. Empty: nothing is monitored.
  [[nodiscard]] std::vector<L3Profile> read() const;
  // What to know about the counts, or empty.
  [[nodiscard]] const std::string& remark() const noexcept { return remark_; }

 private:
  std::string group_;
  bool own_ = false;
  std::string remark_;
  std::map<int, L3Profile> start_;
};

}  // namespace atl::runtime
