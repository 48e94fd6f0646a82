// The kernel's waits on a word of this process (futex(2)).
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace atl::runtime {

// Returns when woken, when `word` is not `expected`, or on a signal.
inline void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}

// Does not read the word, which may be gone: then this wakes nobody, or a waiter that looks again.
inline void futex_wake_one(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace atl::runtime
