// Threads of the runtime that are not workers: the timer, and those for blocking sections.
#pragma once

#include <functional>

namespace atl::runtime {

// Starts a thread that is never joined. It may run wherever the process's first thread may:
// otherwise it would inherit the one core of the worker that started it. Throws RuntimeFault if the
// system cannot start a thread for `purpose`.
void start_helper_thread(const char* purpose, std::function<void()> body);

}  // namespace atl::runtime
