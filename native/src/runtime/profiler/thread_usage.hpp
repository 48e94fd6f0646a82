// What the kernel says of a thread: CPU time, faults, context switches, delays, migrations. The
// files of /proc, not perf's software events: they need no permission and no descriptors, any
// thread may look at any other, and a worker pays nothing for it.
#pragma once

#include <string_view>

#include "atoll/runtime/profile.hpp"

namespace atl::runtime {

// The texts of a thread's files in proc(5); an empty text is a file that could not be read. What a
// text does not say stays empty. Pure.
struct ThreadFiles {
  std::string_view stat;
  std::string_view status;
  std::string_view schedstat;  // CONFIG_SCHED_INFO
  std::string_view sched;      // CONFIG_SCHED_DEBUG
};
[[nodiscard]] ThreadUsage thread_usage(const ThreadFiles& files);

// Of a thread of this process, now. All empty, if it is gone. 4 files: some 30 us.
[[nodiscard]] ThreadUsage usage_of_thread(int tid);

}  // namespace atl::runtime
