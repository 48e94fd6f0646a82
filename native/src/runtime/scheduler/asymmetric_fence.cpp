#include "asymmetric_fence.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace atl::detail {

constinit bool membarrier_works = false;

}  // namespace atl::detail

namespace atl::runtime {

namespace {

long membarrier(int command) { return syscall(SYS_membarrier, command, 0U, 0); }

bool register_membarrier() {
  const long commands = membarrier(MEMBARRIER_CMD_QUERY);
  return commands > 0 && (commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0 &&
         membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
}

}  // namespace

void choose_fences() {
  [[maybe_unused]] static const bool once = detail::membarrier_works = register_membarrier();
}

void heavy_fence() {
  if (!detail::membarrier_works) return detail::full_fence();
  // A full barrier on this CPU as well.
  if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0) [[unlikely]] {
    // A seccomp filter was installed after the start: nothing that relies on light_fence() is safe.
    std::perror("atoll: membarrier worked when the runtime started and fails now");
    std::abort();
  }
}

}  // namespace atl::runtime
