// The kernel's waits on a word of this process (futex(2)).
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <ctime>

namespace atl::runtime {

// Returns when woken, when `word` is not `expected`, on a signal, or at the deadline (true), which
// is a time of CLOCK_MONOTONIC.
inline bool futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected,
                       const timespec* deadline = nullptr) {
  // WAIT_BITSET takes an absolute time.
  const long rc = syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, expected, deadline, nullptr,
                          FUTEX_BITSET_MATCH_ANY);
  return rc != 0 && errno == ETIMEDOUT;
}

// Does not read the word, which may be gone: then this wakes nobody, or a waiter that looks again.
inline void futex_wake_one(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace atl::runtime
