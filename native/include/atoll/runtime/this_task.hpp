// What a task can find out and do about itself.
#pragma once

#include <stop_token>

#include "atoll/runtime/export.hpp"

namespace atl {

// Lets other tasks of this worker run, then continues: tasks that yielded before it and, now and
// then, new ones and those in the shared queues. Returns at once if there are none. Outside of a
// task: std::this_thread::yield().
ATOLL_EXPORT void yield();

namespace this_task {

// Whether the caller runs in a task of some runtime.
ATOLL_EXPORT bool inside();
// The rank of the task's worker, and the core of that worker (an index of Places::cores). Both may
// change when the task suspends or yields. Throw RuntimeFault outside of a task.
ATOLL_EXPORT int worker();
ATOLL_EXPORT int core();
// Reports whether the task was asked to stop. Outside of a task: a token that never does.
ATOLL_EXPORT std::stop_token stop_token();

}  // namespace this_task

}  // namespace atl
