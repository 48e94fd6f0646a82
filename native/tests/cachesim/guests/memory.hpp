// Where the programs of a guest run, and memory of which they know the caches' sets.
#pragma once

#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>

namespace atl::cachesim {

inline constexpr std::size_t kKib = 1024, kMib = 1024 * kKib;
inline constexpr std::size_t kHugePage = 2 * kMib;
inline constexpr std::size_t kLine = 64;

inline void run_on(int cpu) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(cpu, &only);
  if (sched_setaffinity(0, sizeof only, &only) != 0) throw std::runtime_error("cannot bind");
}

// Huge pages of a node, so that neighbours in memory are neighbours in the caches' sets. None is
// there before it is touched.
inline char* space_of(int node, std::size_t bytes) {
  void* const all =
      mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) throw std::runtime_error("no memory");
  const auto start = (reinterpret_cast<std::uintptr_t>(all) + kHugePage - 1) & ~(kHugePage - 1);
  auto* const memory = reinterpret_cast<char*>(start);
  const unsigned long mask = 1UL << node;
  if (madvise(memory, bytes, MADV_HUGEPAGE) != 0 ||
      syscall(SYS_mbind, memory, bytes, MPOL_BIND, &mask, sizeof mask * 8, 0) != 0) {
    throw std::runtime_error("no huge pages of the node");
  }
  return memory;
}

// The kernel clears each page first.
inline void touch(char* memory, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += kLine) memory[at] = 1;
}

inline char* memory_of(int node, std::size_t bytes) {
  char* const memory = space_of(node, bytes);
  touch(memory, bytes);
  return memory;
}

inline void sweep(const volatile char* memory, std::size_t bytes, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t at = 0; at < bytes; at += kLine) (void)memory[at];
  }
}

}  // namespace atl::cachesim
