// What a task can ask and do about itself.
#pragma once

#include <stop_token>

#include "atoll/runtime/export.hpp"

namespace atl {

// Lets other tasks of this worker run, then goes on: those that yielded before it, and now and
// then fresh ones and what waits in the shared queues. Returns at once if there are none. Outside
// of a task: std::this_thread::yield().
ATOLL_EXPORT void yield();

namespace this_task {

// Whether the caller runs in a task of some runtime.
ATOLL_EXPORT bool inside();
// The rank of the worker on which it runs now, and the core that this one sits on (an index of
// Places::cores). Either may change whenever the task suspends or yields. RuntimeFault outside.
ATOLL_EXPORT int worker();
ATOLL_EXPORT int core();
// Says whether somebody asked the task to stop. Outside of a task: a token that never does.
ATOLL_EXPORT std::stop_token stop_token();

}  // namespace this_task

}  // namespace atl
