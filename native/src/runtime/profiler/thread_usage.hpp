// What the kernel reports about a thread: CPU time, faults, context switches, delays, migrations.
// From files in /proc, not perf's software events: they need no permission and no descriptors, any
// thread may read about any other, and they cost the worker nothing.
#pragma once

#include <string_view>

#include "atoll/runtime/profile.hpp"

namespace atl::runtime {

// The texts of a thread's files in proc(5); the text of an unreadable file is empty. Values that a
// text lacks stay empty. Pure.
struct ThreadFiles {
  std::string_view stat;
  std::string_view status;
  std::string_view schedstat;  // CONFIG_SCHED_INFO
  std::string_view sched;      // CONFIG_SCHED_DEBUG
};
[[nodiscard]] ThreadUsage thread_usage(const ThreadFiles& files);

// The usage of a thread of this process now; all empty if it is gone. 4 files: about 30 us.
[[nodiscard]] ThreadUsage usage_of_thread(int tid);

}  // namespace atl::runtime
