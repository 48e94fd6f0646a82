#include "helper_thread.hpp"

#include <sched.h>
#include <unistd.h>

#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "atoll/runtime/places.hpp"
#include "process.hpp"

namespace atl::runtime {

namespace {

void run_everywhere() {
  // Room for the most CPUs of an x86 Linux, 8192. The kernel's id of the first thread is the
  // process's. If the kernel refuses, the inherited mask is good enough.
  cpu_set_t cpus[8];
  if (sched_getaffinity(getpid(), sizeof cpus, cpus) == 0) sched_setaffinity(0, sizeof cpus, cpus);
}

}  // namespace

void start_helper_thread(const char* purpose, std::function<void()> body) {
  try {
    const SignalsBlocked blocked;
    std::thread([body = std::move(body)] {
      run_everywhere();
      body();
    }).detach();
  } catch (const std::system_error&) {
    throw RuntimeFault("no thread could be started for " + std::string(purpose) +
                       ": raise the limit of threads (ulimit -u, the cgroup's pids.max)");
  }
}

}  // namespace atl::runtime
