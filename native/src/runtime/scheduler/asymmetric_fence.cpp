#include "asymmetric_fence.hpp"

#include <linux/membarrier.h>
#include <pthread.h>
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

// A full barrier on every CPU that runs a thread of this process, this one included.
void run_membarrier() {
  if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0) [[unlikely]] {
    // A seccomp filter was installed after the start: nothing that relies on light_fence() is safe.
    std::perror("atoll: membarrier worked when the runtime started and fails now");
    std::abort();
  }
}

constinit CombinedBarrier combined(run_membarrier);

}  // namespace

void choose_fences() {
  [[maybe_unused]] static const bool once = [] {
    pthread_atfork(nullptr, nullptr, [] { combined.renew(); });
    return detail::membarrier_works = register_membarrier();
  }();
}

void heavy_fence() {
  if (!detail::membarrier_works) return detail::full_fence();
  combined.await(combined.ask());
}

std::uint32_t membarriers() noexcept { return combined.runs(); }

// The numbers wrap around; tickets are at most as many barriers ahead as there are threads.
void CombinedBarrier::await(Ticket ticket) noexcept {
  for (;;) {
    // Acquire: the barrier is over before what the caller reads next.
    const std::uint32_t ended = ended_.load(std::memory_order_acquire);
    if (static_cast<std::int32_t>(ended - ticket) >= 0) return;
    if (!running_.exchange(true, std::memory_order_acquire)) {
      const std::uint32_t number = begun_.load(std::memory_order_relaxed) + 1;
      // seq_cst: who reads an older number asked before this barrier began.
      begun_.store(number, std::memory_order_seq_cst);
      run_();
      // Whoever gets in runs one, even if its own is over by now: so `ended_` changes each time,
      // and nobody waits for a change that does not come.
      running_.store(false, std::memory_order_release);
      ended_.store(number, std::memory_order_release);
      ended_.notify_all();
    } else {
      ended_.wait(ended, std::memory_order_acquire);
    }
  }
}

void CombinedBarrier::renew() noexcept {
  ended_.store(begun_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  running_.store(false, std::memory_order_relaxed);
}

}  // namespace atl::runtime
