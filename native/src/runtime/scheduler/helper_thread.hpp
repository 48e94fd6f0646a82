// Threads of the runtime that are no workers: the timer, and those that run blocking sections.
#pragma once

#include <functional>

namespace atl::runtime {

// Starts a thread that is never joined. It may run wherever the process's first thread may: without
// that it would inherit the one core of the worker that happened to start it. RuntimeFault: the
// system has no thread left for `purpose`.
void start_helper_thread(const char* purpose, std::function<void()> body);

}  // namespace atl::runtime
