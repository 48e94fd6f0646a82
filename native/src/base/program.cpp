#include "base/program.hpp"

#include <sched.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

namespace atl::base {

int allowed_cpus() {
  constexpr int kMostCpus = 8192;
  // Also with more CPUs than a cpu_set_t has, the call needs a larger set only to succeed.
  cpu_set_t* const set = CPU_ALLOC(kMostCpus);
  int count = 1;
  if (set != nullptr && sched_getaffinity(0, CPU_ALLOC_SIZE(kMostCpus), set) == 0) {
    count = CPU_COUNT_S(CPU_ALLOC_SIZE(kMostCpus), set);
  }
  CPU_FREE(set);
  return count;
}

void print(const std::string& text) {
  if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0) {
    throw std::system_error(errno, std::generic_category(), "standard output");
  }
}

}  // namespace atl::base
